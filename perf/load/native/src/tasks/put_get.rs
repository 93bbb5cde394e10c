//! The operations of the put/get workload: put a value, get one, or both in turn under one key.

use bytes::Bytes;

use super::unknown;
use crate::session::{Failure, KeyValueSession, Values};
use crate::spec::{LoadSpec, Operation, PutGet};
use crate::task::{Answer, Model, Parts};
use crate::values::put_get::Stock;

/// An operation made ready: a key, its index, and what is to be put under it.
#[derive(Clone, Debug)]
pub struct Prepared {
    operation: Operation,
    index: u64,
    pub key: String,
    pub value: Option<Bytes>,
}

/// The put/get workload on one session.
#[derive(Debug)]
pub struct PutGetModel<S> {
    session: S,
    stock: Stock,
    has_both: bool,
}

impl<S: KeyValueSession> PutGetModel<S> {
    /// Puts the values of the spec's value seed, and expects them.
    ///
    /// # Errors
    /// The mix has an operation that the put/get workload does not know.
    pub fn new(spec: &LoadSpec, records: &PutGet, session: S) -> Result<Self, String> {
        for (operation, _) in &spec.mix {
            if !matches!(
                operation,
                Operation::Put | Operation::Get | Operation::PutGet
            ) {
                return Err(unknown("put-get", *operation));
            }
        }
        let stock = Stock::new(records, spec.seed, spec.value_seed, spec.run)?;
        let has_both = spec
            .mix
            .iter()
            .any(|(operation, _)| *operation == Operation::PutGet);
        Ok(Self {
            session,
            stock,
            has_both,
        })
    }

    async fn put_and_get(
        &self,
        prepared: &Prepared,
        value: &Bytes,
        parts: &dyn Parts,
    ) -> Result<Option<Values>, Failure> {
        let begin_s = parts.now();
        self.session
            .put(&prepared.key, std::slice::from_ref(value))
            .await?;
        let put_s = parts.now();
        parts.note(Operation::PutGet, "put", begin_s, put_s);
        let found = self.session.get(&prepared.key).await?;
        parts.note(Operation::PutGet, "get", put_s, parts.now());
        Ok(found)
    }
}

impl<S: KeyValueSession> Model for PutGetModel<S> {
    type Prepared = Prepared;
    type Reply = Option<Values>;

    fn rows(&self, _: Operation) -> u64 {
        1
    }

    fn parts(&self) -> Vec<(Operation, &'static str)> {
        let parts = if self.has_both {
            ["put", "get"].as_slice()
        } else {
            &[]
        };
        parts
            .iter()
            .map(|part| (Operation::PutGet, *part))
            .collect()
    }

    fn prepare(&self, operation: Operation, number: u64) -> Result<Prepared, String> {
        let index = match operation {
            Operation::Put => self.stock.choose_put(number),
            _ => self.stock.choose_get(number),
        };
        let key = self.stock.key_name(index);
        let value = (operation != Operation::Get).then(|| self.stock.value(index));
        Ok(Prepared {
            operation,
            index,
            key,
            value,
        })
    }

    async fn send(
        &self,
        prepared: &Prepared,
        parts: &dyn Parts,
    ) -> Result<Option<Values>, Failure> {
        match &prepared.value {
            None => self.session.get(&prepared.key).await,
            Some(value) if prepared.operation == Operation::Put => {
                self.session
                    .put(&prepared.key, std::slice::from_ref(value))
                    .await?;
                Ok(None)
            }
            Some(value) => self.put_and_get(prepared, value, parts).await,
        }
    }

    fn judge(&self, prepared: &Prepared, reply: &Option<Values>) -> Answer {
        // An acknowledged put is complete; what is stored is verified by the gets that follow.
        if prepared.operation == Operation::Put {
            return Answer::Completed;
        }
        self.stock.check(prepared.index, reply.as_deref())
    }

    fn describe(&self, prepared: &Prepared) -> String {
        format!("{} of {}", prepared.operation, prepared.key)
    }
}
