//! The files of an engine. A thread of its own writes them, so that no send ever waits for a disk.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use crate::load::hlog::{self, Interval};
use crate::spec::{EngineResult, INTERVALS, PROGRESS, RESULT, measure_file};

enum Text {
    Intervals(String),
    Progress(String),
}

/// Where a load's results go, each at once on its way to the disk.
pub struct Output {
    directory: PathBuf,
    texts: Sender<Text>,
    writer: JoinHandle<std::io::Result<()>>,
}

impl Output {
    /// Opens the interval log of a load that starts at `start_s` (Unix time), and PROGRESS.
    ///
    /// # Errors
    /// A file cannot be made.
    pub fn open(directory: &Path, start_s: f64) -> Result<Self, String> {
        let make = |name| {
            let path = directory.join(name);
            File::create(&path).map_err(|why| format!("cannot write {}: {why}", path.display()))
        };
        let (mut log, mut progress) = (make(INTERVALS)?, make(PROGRESS)?);
        let (texts, received) = channel();
        let writer = std::thread::spawn(move || {
            log.write_all(hlog::head(start_s).as_bytes())?;
            for text in received {
                match text {
                    Text::Intervals(lines) => log.write_all(lines.as_bytes())?,
                    Text::Progress(lines) => progress.write_all(lines.as_bytes())?,
                }
            }
            Ok(())
        });
        Ok(Self {
            directory: directory.to_owned(),
            texts,
            writer,
        })
    }

    /// Appends to the interval log.
    ///
    /// # Errors
    /// It could not be written any more.
    pub fn append(&self, interval: &Interval) -> Result<(), String> {
        self.pass_on(Text::Intervals(interval.line()))
    }

    /// Appends lines of PROGRESS.
    ///
    /// # Errors
    /// It could not be written any more.
    pub fn report(&self, lines: String) -> Result<(), String> {
        self.pass_on(Text::Progress(lines))
    }

    /// Reads MEASURE of a stage: a Unix time, once it is there.
    ///
    /// # Errors
    /// The file holds something else.
    pub fn measure_at(&self, place: usize) -> Result<Option<f64>, String> {
        let path = self.directory.join(measure_file(place));
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(format!("cannot read {}: {why}", path.display())),
        };
        let text = text.trim();
        if text.is_empty() {
            // It is being written.
            return Ok(None);
        }
        text.parse()
            .map(Some)
            .map_err(|_| format!("{} holds no Unix time: {text}", path.display()))
    }

    /// Waits until everything is written, then writes RESULT in one step.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn finish(self, result: &EngineResult) -> Result<(), String> {
        let path = self.directory.join(RESULT);
        self.close()?;
        let fresh = path.with_extension("new");
        serde_json::to_vec_pretty(result)
            .map_err(std::io::Error::other)
            .and_then(|text| std::fs::write(&fresh, text))
            .and_then(|()| std::fs::rename(&fresh, &path))
            .map_err(|why| format!("cannot write {}: {why}", path.display()))
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn close(self) -> Result<(), String> {
        drop(self.texts);
        match self.writer.join() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => Err(format!("cannot write the interval log: {why}")),
            Err(_) => Err("the interval log's writer broke down".to_owned()),
        }
    }

    fn pass_on(&self, text: Text) -> Result<(), String> {
        let is_gone = self.texts.send(text).is_err();
        // Why it has gone is what its thread gives back, but nobody can wait for that here.
        if is_gone {
            return Err(format!(
                "cannot write the interval log in {}; is the disk full?",
                self.directory.display()
            ));
        }
        Ok(())
    }
}
