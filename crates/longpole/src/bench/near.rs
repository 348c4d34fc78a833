//! Names near a mistyped one.

/// Names proposed at most.
const MOST: usize = 3;

/// How many letters have to be put in, taken out or changed; counted no further than `most`.
fn distance(a: &[u8], b: &[u8], most: usize) -> usize {
    if a.len().abs_diff(b.len()) > most {
        return most + 1;
    }
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (row, &left) in a.iter().enumerate() {
        let mut corner = above[0];
        above[0] = row + 1;
        let mut least = above[0];
        for (column, &right) in b.iter().enumerate() {
            let changed = corner + usize::from(!left.eq_ignore_ascii_case(&right));
            corner = above[column + 1];
            above[column + 1] = changed.min(corner + 1).min(above[column] + 1);
            least = least.min(above[column + 1]);
        }
        if least > most {
            return most + 1;
        }
    }
    above[b.len()]
}

/// The names that are most like `word`, nearest first: by letters that differ, whole or of a part between slashes. `word` and names are a
/// few hundred bytes long at most.
pub(crate) fn nearest<'n>(word: &str, names: &[&'n str]) -> Vec<&'n str> {
    let most = (word.len() / 3).max(1);
    let score = |name: &&'n str| {
        let whole = distance(word.as_bytes(), name.as_bytes(), most);
        // Somebody who types one part of a key means that part.
        let part = name.split('/').map(|part| distance(word.as_bytes(), part.as_bytes(), most)).min().unwrap_or(usize::MAX);
        let contains = if name.to_ascii_lowercase().contains(&word.to_ascii_lowercase()) { 1 } else { usize::MAX };
        whole.min(part).min(contains)
    };
    let mut near: Vec<(usize, &'n str)> = names.iter().map(|name| (score(name), *name)).filter(|(score, _)| *score <= most).collect();
    near.sort_unstable();
    near.into_iter().take(MOST).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] =
        ["m/ops/copy/decode/float4", "m/ops/gemv/decode/thread_row", "m/ops/gemv/decode/warp_row", "m/model/step/tile"];

    #[test]
    fn slips_are_found_whole_and_by_part() {
        assert_eq!(nearest("m/ops/gemv/decode/wrap_row", &NAMES)[0], NAMES[2]);
        assert_eq!(nearest("gemw", &NAMES), [NAMES[1], NAMES[2]]);
        assert_eq!(nearest("FLOAT4", &NAMES), [NAMES[0]]);
        assert_eq!(nearest("warp", &NAMES), [NAMES[2]]);
        assert!(nearest("something else", &NAMES).is_empty() && nearest("", &NAMES).len() <= 3);
    }

    #[test]
    fn distances_by_hand() {
        assert_eq!(distance(b"kitten", b"sitting", 9), 3);
        assert_eq!(distance(b"abc", b"abc", 9), 0);
        assert_eq!(distance(b"abc", b"xyz", 1), 2);
        assert_eq!(distance(b"", b"ab", 9), 2);
    }
}
