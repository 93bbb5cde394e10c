//! The operations of a workload of one's own: each sends one statement, about one row.
//!
//! The same as `perf/load/engine/tasks/statements.py`.

use std::collections::HashMap;

use super::choices::KnownRecords;
use super::unknown;
use crate::session::{Answered, Failure, StatementSession, StatementValue};
use crate::spec::statements::{Expected, Row, Statements};
use crate::spec::{LoadSpec, Operation};
use crate::task::{Answer, Model, Parts};
use crate::values::keys::Chooser;
use crate::values::statements::{Maker, Values, check_answer, choice_stream};

/// Which row an operation is about, and the values of its parameters and of its answer.
#[derive(Clone, Debug)]
pub struct Prepared {
    operation: Operation,
    pub row: u64,
    /// Which of its engine's new rows that is, if it is.
    turn: Option<u32>,
    pub parameters: Vec<StatementValue>,
    wanted: Vec<StatementValue>,
}

/// All statements of a mix, which choose among the same rows.
#[derive(Debug)]
pub struct StatementModel<S> {
    session: S,
    known: KnownRecords,
    choices: u64,
    tasks: HashMap<Operation, Task>,
}

/// One statement, by its name and its place among all of them.
#[derive(Debug)]
struct Task {
    name: String,
    place: usize,
    about: About,
    parameters: Vec<Maker>,
    wanted: Vec<Maker>,
    expect: Option<Expected>,
}

#[derive(Debug)]
enum About {
    /// The row whose number the operation has.
    SameNumber,
    /// The next one of this engine.
    New,
    Known(Chooser),
}

impl<S: StatementSession> StatementModel<S> {
    /// Lets all statements of the mix choose among the same rows.
    ///
    /// # Errors
    /// An operation is no statement, has a parameter without a value, or is about rows that are not stored.
    pub fn new(spec: &LoadSpec, records: &Statements, session: S) -> Result<Self, String> {
        let mut model = Self::empty(spec, session);
        let values = Values::new(records, spec.seed, spec.run)?;
        for (operation, _) in &spec.mix {
            let name = operation.to_string();
            let Some(statement) = records.statements.get(&name) else {
                return Err(unknown("statements", *operation));
            };
            if statement.row != Row::New && spec.readable_rows < records.rows {
                let (stored, rows) = (spec.readable_rows, records.rows);
                return Err(format!(
                    "statement {name} is about one of {rows} rows, of which {stored} are stored; \
                     give the workload `preload: records`"
                ));
            }
            let about = match statement.row {
                Row::New => About::New,
                Row::Uniform => About::Known(Chooser::Uniform {
                    records: records.rows,
                }),
                Row::Zipfian => About::Known(Chooser::scrambled(records.rows, 0)),
                Row::Latest => About::Known(Chooser::latest(records.rows)),
            };
            let task = model.task(records, &values, &name, about)?;
            model.tasks.insert(*operation, task);
        }
        Ok(model)
    }

    /// Lets write number n store row number n.
    ///
    /// # Errors
    /// What stores a row is no statement, or has a parameter without a value.
    pub fn preload(spec: &LoadSpec, records: &Statements, session: S) -> Result<Self, String> {
        let mut model = Self::empty(spec, session);
        let values = Values::new(records, spec.seed, spec.run)?;
        let task = model.task(records, &values, &records.store, About::SameNumber)?;
        model.tasks.insert(Operation::Write, task);
        Ok(model)
    }

    fn empty(spec: &LoadSpec, session: S) -> Self {
        Self {
            session,
            known: KnownRecords::new(spec),
            choices: choice_stream(spec.seed, spec.run),
            tasks: HashMap::new(),
        }
    }

    fn task(
        &self,
        records: &Statements,
        values: &Values,
        name: &str,
        about: About,
    ) -> Result<Task, String> {
        let found = records.statements.iter().enumerate();
        let Some((place, (_, statement))) = { found }.find(|(_, (known, _))| *known == name) else {
            return Err(format!("there is no statement {name}; see records.store"));
        };
        let maker_of = |wanted: &String| {
            values.maker(wanted).cloned().ok_or_else(|| {
                format!("statement {name} has :{wanted}, but records.values has none; add it there")
            })
        };
        let expect = statement.expect.clone();
        let columns = expect.iter().flat_map(|expected| expected.columns.values());
        Ok(Task {
            name: name.to_owned(),
            place,
            about,
            parameters: { self.session.parameters(place).iter() }
                .map(maker_of)
                .collect::<Result<_, _>>()?,
            wanted: columns.map(maker_of).collect::<Result<_, _>>()?,
            expect,
        })
    }

    fn find(&self, operation: Operation) -> Result<&Task, String> {
        let found = self.tasks.get(&operation);
        found.ok_or_else(|| unknown("statements", operation))
    }
}

impl<S: StatementSession> Model for StatementModel<S> {
    type Prepared = Prepared;
    type Reply = Answered;

    fn rows(&self, _: Operation) -> u64 {
        1
    }

    fn prepare(&self, operation: Operation, number: u64) -> Result<Prepared, String> {
        let task = self.find(operation)?;
        let known = &self.known;
        let (row, turn) = match &task.about {
            About::SameNumber => (number, None),
            About::New => {
                let turn = known.next_turn().ok_or("an engine has stored 2^32 rows")?;
                (known.number_of_turn(turn), Some(turn))
            }
            About::Known(chooser) => {
                let index = chooser.choose(self.choices, number, known.count());
                (known.number(index), None)
            }
        };
        let make = |makers: &[Maker]| makers.iter().map(|maker| maker.make(row, number)).collect();
        Ok(Prepared {
            operation,
            row,
            turn,
            parameters: make(&task.parameters),
            wanted: make(&task.wanted),
        })
    }

    async fn send(&self, prepared: &Prepared, _: &dyn Parts) -> Result<Answered, Failure> {
        // What was prepared has a task.
        let place = self.tasks[&prepared.operation].place;
        self.session.ask(place, &prepared.parameters).await
    }

    fn judge(&self, prepared: &Prepared, reply: &Answered) -> Answer {
        let expected = self.tasks[&prepared.operation].expect.as_ref();
        let answer = check_answer(expected, &prepared.wanted, reply);
        if let (Some(turn), Answer::Completed) = (prepared.turn, answer) {
            // From now on, others may choose it.
            self.known.acknowledge(turn);
        }
        answer
    }

    fn describe(&self, prepared: &Prepared) -> String {
        let name = &self.tasks[&prepared.operation].name;
        format!("{name} of row {}", prepared.row)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::spec::Records;
    use crate::tasks::pretend::{Pretend, spec};

    const ADD: usize = 0;

    /// A session whose table is a map; it knows just the statements below.
    #[derive(Default)]
    struct Table {
        rows: RefCell<BTreeMap<i128, StatementValue>>,
        /// How often each row comes.
        times: Cell<usize>,
        refuses: Cell<bool>,
    }

    impl StatementSession for &Table {
        fn parameters(&self, statement: usize) -> &[String] {
            static NAMES: std::sync::OnceLock<[String; 2]> = std::sync::OnceLock::new();
            let names = NAMES.get_or_init(|| ["id".to_owned(), "number".to_owned()]);
            &names[..if statement == ADD { 2 } else { 1 }]
        }

        async fn ask(
            &self,
            statement: usize,
            values: &[StatementValue],
        ) -> Result<Answered, Failure> {
            let StatementValue::Whole(id) = values[0] else {
                panic!("{values:?}")
            };
            if statement == ADD {
                let applied = !self.refuses.get();
                if applied {
                    self.rows.borrow_mut().insert(id, values[1].clone());
                }
                let rows = vec![vec![]];
                return Ok(Answered { rows, applied });
            }
            let row = self
                .rows
                .borrow()
                .get(&id)
                .map(|number| vec![Some(number.clone())]);
            let rows = row
                .into_iter()
                .flat_map(|row| vec![row; self.times.get()])
                .collect();
            let applied = false;
            Ok(Answered { rows, applied })
        }
    }

    fn records() -> Statements {
        let get = |row: &str, expect: Value| json!({"text": "SELECT number FROM t WHERE id = :id", "row": row, "expect": expect});
        let expected = json!({"rows": 1, "columns": {"number": "number"}, "applied": null});
        let add = json!({
            "text": "INSERT INTO t (id, number) VALUES (:id, :number) IF NOT EXISTS", "row": "new",
            "expect": {"rows": null, "columns": {}, "applied": true},
        });
        let said = json!({
            "kind": "statements", "language": "cql", "schema": ["CREATE TABLE t"], "rows": 10,
            "store": "add-one", "count": "SELECT id FROM t",
            "values": {
                "id": {"kind": "row-number", "of": "row"},
                "number": {"kind": "integer", "least": 0, "most": 1000, "distribution": "uniform",
                           "of": "row"},
            },
            "statements": {
                "add-one": add, "get-one": get("uniform", expected),
                "get-new": get("latest", Value::Null), "get-hot": get("zipfian", Value::Null),
            },
        });
        match serde_json::from_value(said).unwrap() {
            Records::Statements(records) => records,
            other => panic!("{other:?}"),
        }
    }

    fn own(name: &str) -> Operation {
        serde_json::from_value(json!(name)).unwrap()
    }

    fn mixed(more: &Value) -> LoadSpec {
        let mix = json!({"add-one": 1.0, "get-one": 1.0, "get-new": 1.0, "get-hot": 1.0});
        let mut all = json!({"readable_rows": 10, "first_row": 10, "engine_index": 1,
                             "engine_count": 2});
        for (name, value) in more.as_object().into_iter().flatten() {
            all[name] = value.clone();
        }
        spec(&mix, &all)
    }

    fn loaded(table: &Table) -> StatementModel<&Table> {
        table.times.set(1);
        let preload = StatementModel::preload(&mixed(&json!({})), &records(), table).unwrap();
        for number in 0..10 {
            let done = Pretend::default().run(&preload, Operation::Write, number);
            assert_eq!(done, Some(Answer::Completed));
        }
        assert!(table.rows.borrow().keys().copied().eq(0..10));
        StatementModel::new(&mixed(&json!({})), &records(), table).unwrap()
    }

    fn judge_all(model: &StatementModel<&Table>) -> BTreeMap<u64, Answer> {
        let rows = (0..200).map(|number| {
            let prepared = model.prepare(own("get-one"), number).unwrap();
            let answer = Pretend::default().send(model, &prepared).unwrap();
            (prepared.row, answer)
        });
        rows.collect()
    }

    #[test]
    fn what_is_read_is_what_was_stored_and_what_was_changed_is_found() {
        let table = Table::default();
        let model = loaded(&table);
        let found = judge_all(&model);
        assert_eq!(found.len(), 10);
        assert!(found.values().all(|answer| *answer == Answer::Completed));
        table
            .rows
            .borrow_mut()
            .insert(4, StatementValue::Whole(1001));
        table.rows.borrow_mut().remove(&7);
        let wrong: Vec<_> = { judge_all(&model).into_iter() }
            .filter(|(_, answer)| *answer != Answer::Completed)
            .collect();
        assert_eq!(wrong, [(4, Answer::WrongData), (7, Answer::NotFound)]);
        table.times.set(2);
        let found = judge_all(&model);
        assert_eq!(
            found
                .values()
                .filter(|answer| **answer == Answer::WrongData)
                .count(),
            9
        );
    }

    #[test]
    fn a_new_row_is_chosen_once_its_condition_has_held() {
        let table = Table::default();
        let model = loaded(&table);
        let newest = || {
            let rows = (0..500).map(|number| model.prepare(own("get-new"), number).unwrap().row);
            rows.max().unwrap()
        };
        table.refuses.set(true);
        let refused = Pretend::default().run(&model, own("add-one"), 0);
        assert_eq!((refused, newest()), (Some(Answer::WrongData), 9));
        table.refuses.set(false);
        // The second of two engines, whose first new row was 11.
        let prepared = model.prepare(own("add-one"), 1).unwrap();
        assert_eq!((prepared.row, newest()), (13, 9));
        assert_eq!(model.describe(&prepared), "add-one of row 13");
        assert_eq!(
            Pretend::default().send(&model, &prepared),
            Some(Answer::Completed)
        );
        assert_eq!(newest(), 13);
    }

    #[test]
    fn what_cannot_be_asked_is_named() {
        let table = Table::default();
        let why = |spec: &LoadSpec, records: &Statements| {
            StatementModel::new(spec, records, &table).err().unwrap()
        };
        let unknown = spec(&json!({"get-non": 1.0}), &json!({}));
        let said = why(&unknown, &records());
        assert_eq!(said, "records of kind statements know no operation get-non");
        let said = why(&mixed(&json!({"readable_rows": 9})), &records());
        assert!(
            said.contains("is about one of 10 rows, of which 9 are stored"),
            "{said}"
        );
        let mut without = records();
        without.values.remove("number");
        let said = why(&mixed(&json!({})), &without);
        assert!(
            said.contains(":number, but records.values has none"),
            "{said}"
        );
    }
}
