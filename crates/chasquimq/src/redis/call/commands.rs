//! Commands as they are sent.

/// Commands that are sent one behind the other. Long texts stay where they are: the system would be asked for the memory of each copy.
#[derive(Debug, Default)]
pub struct Commands<'a> {
    bytes: Vec<u8>,
    // and before which of the bytes each one goes
    long: Vec<(usize, &'a [u8])>,
}

impl From<Vec<u8>> for Commands<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        let long = Vec::new();
        Self { bytes, long }
    }
}

impl<'a> Commands<'a> {
    /// Adds a command that stores a long text for so many ms.
    pub(crate) fn push_set(&mut self, name: &str, text: &'a [u8], ms: &str) {
        let bytes = &mut self.bytes;
        push_line(bytes, b'*', 5);
        push_bulk(bytes, b"SET");
        push_bulk(bytes, name.as_bytes());
        push_line(bytes, b'$', text.len() as u64);
        self.long.push((bytes.len(), text));
        bytes.extend_from_slice(b"\r\n");
        push_bulk(bytes, b"PX");
        push_bulk(bytes, ms.as_bytes());
    }

    /// Adds a packed command.
    pub(crate) fn push(&mut self, command: &[u8]) {
        self.bytes.extend_from_slice(command);
    }

    /// All of it, in order.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        let fronts = self.long.iter().flat_map(move |(to, text)| {
            let front = &self.bytes[from..*to];
            from = *to;
            [front, *text]
        });
        let last = self.long.last().map_or(0, |(end, _)| *end);
        fronts.chain([&self.bytes[last..]])
    }
}

pub(crate) fn push_bulk(packed: &mut Vec<u8>, bytes: &[u8]) {
    push_line(packed, b'$', bytes.len() as u64);
    packed.extend_from_slice(bytes);
    packed.extend_from_slice(b"\r\n");
}

pub(crate) fn push_line(packed: &mut Vec<u8>, kind: u8, number: u64) {
    let mut digits = [0; 20];
    packed.push(kind);
    packed.extend_from_slice(decimal(number as i64, &mut digits));
    packed.extend_from_slice(b"\r\n");
}

/// A whole number in decimal.
pub(crate) fn decimal(number: i64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    &digits[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_stand_in_their_places() {
        let mut commands = Commands::default();
        commands.push_set("a", b"text", "60");
        commands.push_set("b", b"", "7");
        commands.push(b"*1\r\n$4\r\nPING\r\n");
        let set = |name: &str, text: &str, ms: &str| {
            let mut set = redis::cmd("SET");
            set.arg(name).arg(text).arg("PX").arg(ms).get_packed_command()
        };
        let expected = [
            set("a", "text", "60"),
            set("b", "", "7"),
            redis::cmd("PING").get_packed_command(),
        ];
        assert_eq!(commands.pieces().collect::<Vec<_>>().concat(), expected.concat());
        assert_eq!(Commands::from(b"x".to_vec()).pieces().collect::<Vec<_>>(), [b"x"]);
    }
}
