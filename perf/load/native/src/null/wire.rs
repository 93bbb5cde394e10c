//! What a protocol has to do for a null server.

use crate::behaviour::How;

/// The other side does not speak the protocol; its connection is closed.
#[derive(Debug)]
pub struct Broken;

/// An operation of a workload, to be answered when its time has come.
pub struct Operation<Request> {
    /// CRC-32 of the id of the device, or of the key.
    pub device: u32,
    /// Timestamp of the first row written, 0 for a read.
    pub ts_ms: i64,
    pub request: Request,
}

/// One protocol; what clients have prepared is shared by all connections.
pub trait Wire {
    /// All that an answer needs to be written later.
    type Request;

    /// Gives the length of the first message in `inbox`, once enough of it has come to know.
    ///
    /// # Errors
    /// It is no message.
    fn length(&self, inbox: &[u8]) -> Result<Option<usize>, Broken>;

    /// Takes one whole message: gives an operation, or answers at once what is none.
    ///
    /// # Errors
    /// It is not what its length and kind promised.
    fn take(
        &mut self,
        message: &[u8],
        outbox: &mut Vec<u8>,
    ) -> Result<Option<Operation<Self::Request>>, Broken>;

    /// Answers an operation.
    fn answer(&self, request: &Self::Request, how: How, outbox: &mut Vec<u8>);
}
