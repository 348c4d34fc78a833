//! CRC-32 as in zip and PNG (reflected polynomial 0xEDB88320), eight bytes at a time.

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0_u32; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ 0xEDB8_8320 } else { value >> 1 };
            bit += 1;
        }
        tables[0][byte] = value;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

static TABLES: [[u32; 256]; 8] = tables();

/// The CRC-32 of `bytes`.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    let (eights, rest) = bytes.as_chunks::<8>();
    for eight in eights {
        let mixed = u64::from_le_bytes(*eight) ^ u64::from(crc);
        crc = mixed.to_le_bytes().iter().zip(TABLES.iter().rev()).fold(0, |crc, (&byte, table)| crc ^ table[usize::from(byte)]);
    }
    for &byte in rest {
        crc = (crc >> 8) ^ TABLES[0][((crc ^ u32::from(byte)) & 0xff) as usize];
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_standard() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn eight_bytes_at_a_time_equals_one_at_a_time() {
        let bytes: Vec<u8> = (0..100_u32).map(|i| (i * 37 + 11) as u8).collect();
        for end in 0..bytes.len() {
            let slow = !bytes[..end].iter().fold(u32::MAX, |crc, &byte| (crc >> 8) ^ TABLES[0][((crc ^ u32::from(byte)) & 0xff) as usize]);
            assert_eq!(crc32(&bytes[..end]), slow);
        }
    }
}
