//! Owns the 64 bits that travel with an operation and come back with its completion.

/// Kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Op {
    /// Establishing a TCP connection.
    Connect,
    /// The timer linked to a connect.
    ConnectTimeout,
    /// A multishot receive.
    Recv,
    /// A send from memory the caller handed over.
    Send,
    /// A send that is done when it was submitted, or fails.
    SendNow,
    /// A send from a request image.
    SendImage,
    /// A multishot receive of datagrams.
    RecvDatagrams,
    /// A send of datagrams, which is done when it was submitted, or fails.
    SendDatagrams,
    /// Ending a receive.
    Cancel,
    /// Another thread woke this one.
    Wake,
}

const OPS: [Op; 10] = [
    Op::Connect,
    Op::ConnectTimeout,
    Op::Recv,
    Op::Send,
    Op::SendNow,
    Op::SendImage,
    Op::RecvDatagrams,
    Op::SendDatagrams,
    Op::Cancel,
    Op::Wake,
];

impl Op {
    /// The 64 bits of an operation known by a number of 56 bits, which outlasts any run.
    pub(super) fn numbered(self, number: u64) -> u64 {
        u64::from(self as u8) << 56 | number & NUMBER
    }

    /// That number.
    pub(super) fn number(bits: u64) -> u64 {
        bits & NUMBER
    }
}

/// Which operation, of which connection, of which life of that connection: completions of an earlier
/// life are told apart by `generation` (24 bits, wrapping).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// The operation.
    pub op: Op,
    /// Life of the slot, 24 bits.
    pub generation: u32,
    /// Index of the connection.
    pub slot: u32,
}

impl Token {
    pub(super) fn pack(self) -> u64 {
        u64::from(self.op as u8) << 56 | u64::from(self.generation & 0xff_ffff) << 32 | u64::from(self.slot)
    }

    pub(super) fn unpack(bits: u64) -> Self {
        let op = OPS[((bits >> 56) as usize).min(OPS.len() - 1)];
        Self { op, generation: (bits >> 32) as u32 & 0xff_ffff, slot: bits as u32 }
    }
}

const NUMBER: u64 = (1 << 56) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_as_they_went() {
        for (i, op) in OPS.into_iter().enumerate() {
            assert_eq!(op as usize, i);
            let token = Token { op, generation: 0xff_fffe, slot: u32::MAX - 1 };
            assert_eq!(Token::unpack(token.pack()), token);
            let numbered = op.numbered(NUMBER - 1);
            assert_eq!((Token::unpack(numbered).op, Op::number(numbered)), (op, NUMBER - 1));
        }
    }
}
