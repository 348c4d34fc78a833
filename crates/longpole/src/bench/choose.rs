//! Which benchmarks are meant.

use longpole_bench::key::{Key, Selector, select};
use longpole_bench::protocol::{Benchmark, List};

use super::near::nearest;
use crate::exit::Failure;

/// Reads selectors of the command line.
pub(crate) fn selectors(words: &[String]) -> Result<Vec<Selector>, Failure> {
    words.iter().map(|word| Selector::parse(word).map_err(|error| Failure::Usage(error.to_string()))).collect()
}

/// What is said of a selector that chooses nothing.
fn nothing(word: &str, keys: &[&str], model: Option<&str>) -> Failure {
    let of_model = model.map(|model| format!(" of model `{model}`")).unwrap_or_default();
    let near = nearest(word, keys);
    if !near.is_empty() {
        let near: Vec<String> = near.iter().map(|key| format!("`{key}`")).collect();
        return Failure::Usage(format!("no benchmark{of_model} matches `{word}`; did you mean {}?", near.join(" or ")));
    }
    let example = keys.first().map(|key| format!(", such as `{key}`")).unwrap_or_default();
    let list = "`longpole bench list` shows all";
    Failure::Usage(format!("no benchmark{of_model} matches `{word}`; the suite has {}{example}; {list}", keys.len()))
}

/// The keys that are meant.
pub(crate) fn keys(all: &[Key], words: &[String], model: Option<&str>) -> Result<Vec<Key>, Failure> {
    let selectors = selectors(words)?;
    let names = |of: &dyn Fn(&Key) -> bool| all.iter().filter(|key| of(key)).map(Key::as_str).collect::<Vec<_>>();
    if let Some(model) = model
        && !all.iter().any(|key| key.model() == model)
    {
        let mut models: Vec<&str> = all.iter().map(Key::model).collect();
        models.sort_unstable();
        models.dedup();
        return Err(Failure::Usage(format!("there is no model `{model}`; there are {}", models.join(", "))));
    }
    let chosen = select(all, &selectors, model)
        .map_err(|word| nothing(&word, &names(&|key: &Key| model.is_none_or(|model| key.model() == model)), model))?;
    if chosen.is_empty() {
        return Err(Failure::Input("the suite has no benchmarks".to_owned()));
    }
    Ok(chosen.into_iter().map(|at| all[at].clone()).collect())
}

/// The benchmarks of a list that are meant.
pub(crate) fn benchmarks<'l>(list: &'l List, words: &[String], model: Option<&str>) -> Result<Vec<&'l Benchmark>, Failure> {
    let all: Vec<Key> = list.benchmarks.iter().map(|benchmark| benchmark.key.clone()).collect();
    let chosen = keys(&all, words, model)?;
    let mut chosen = chosen.iter().peekable();
    // Both are in the order of the list.
    Ok(list.benchmarks.iter().filter(|benchmark| chosen.next_if(|key| **key == benchmark.key).is_some()).collect())
}
