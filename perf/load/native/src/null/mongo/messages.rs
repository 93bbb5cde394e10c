//! Messages of MongoDB's wire protocol: the command in one, and its reply.
//!
//! Numbers are little-endian. A header is the message's length, its id, the id that it replies to, and
//! its kind (`OP_MSG`, or the older `OP_QUERY` and `OP_REPLY`).

use mongodb::bson::RawDocument;

use crate::wire::Broken;

const HEADER: usize = 16;
const OP_REPLY: i32 = 1;
const OP_QUERY: i32 = 2004;
const OP_MSG: i32 = 2013;

const CHECKSUM_PRESENT: u32 = 1;
const MORE_TO_COME: u32 = 1 << 1;
const CHECKSUM: usize = 4;
const BODY: u8 = 0;
const DOCUMENTS: u8 = 1;
/// In an `OP_REPLY`: it may wait for what is to come. Servers always say so.
const AWAIT_CAPABLE: i32 = 8;

/// Where a reply goes, and in which form.
#[derive(Clone, Copy)]
pub struct Sender {
    pub id: i32,
    is_query: bool,
    pub wants_reply: bool,
}

/// A command.
pub struct Asked<'a> {
    pub sender: Sender,
    pub body: &'a RawDocument,
    /// Of the documents that came beside the body: the first, and how many.
    first: Option<&'a RawDocument>,
    count: i32,
}

impl<'a> Asked<'a> {
    /// Reads a whole message.
    pub fn read(message: &'a [u8]) -> Result<Self, Broken> {
        let (id, kind) = (int(message, 4)?, int(message, 12)?);
        match kind {
            OP_MSG => Self::read_msg(message, id),
            OP_QUERY => Self::read_query(message, id),
            _ => Err(Broken),
        }
    }

    fn read_msg(message: &'a [u8], id: i32) -> Result<Self, Broken> {
        let flags = int(message, HEADER)?.cast_unsigned();
        let unread = if flags & CHECKSUM_PRESENT == 0 {
            0
        } else {
            CHECKSUM
        };
        let end = message.len().checked_sub(unread).ok_or(Broken)?;
        let mut rest = message.get(HEADER + 4..end).ok_or(Broken)?;
        let (mut body, mut first, mut count) = (None, None, 0);
        while let Some((&kind, section)) = rest.split_first() {
            let size = size(section)?;
            let (section, after) = section.split_at_checked(size).ok_or(Broken)?;
            rest = after;
            match kind {
                BODY => body = Some(document(section)?),
                DOCUMENTS => {
                    let mut documents = section.get(4..).ok_or(Broken)?;
                    let name = documents.iter().position(|&byte| byte == 0).ok_or(Broken)?;
                    documents = documents.get(name + 1..).ok_or(Broken)?;
                    while !documents.is_empty() {
                        let (one, after) = documents
                            .split_at_checked(self::size(documents)?)
                            .ok_or(Broken)?;
                        if first.is_none() {
                            first = Some(document(one)?);
                        }
                        count += 1;
                        documents = after;
                    }
                }
                _ => return Err(Broken),
            }
        }
        Ok(Self {
            sender: Sender {
                id,
                is_query: false,
                wants_reply: flags & MORE_TO_COME == 0,
            },
            body: body.ok_or(Broken)?,
            first,
            count,
        })
    }

    fn read_query(message: &'a [u8], id: i32) -> Result<Self, Broken> {
        // Flags, the collection's name, how many to skip and to return, then the command.
        let name = message.get(HEADER + 4..).ok_or(Broken)?;
        let end = name.iter().position(|&byte| byte == 0).ok_or(Broken)?;
        let rest = name.get(end + 1 + 8..).ok_or(Broken)?;
        let body = rest.get(..size(rest)?).ok_or(Broken)?;
        Ok(Self {
            sender: Sender {
                id,
                is_query: true,
                wants_reply: true,
            },
            body: document(body)?,
            first: None,
            count: 0,
        })
    }

    /// Gives the first of the documents that a command names so, and how many there are: beside the body,
    /// or in an array within it.
    pub fn documents(&self, name: &str) -> (Option<&'a RawDocument>, i32) {
        if self.count > 0 {
            return (self.first, self.count);
        }
        let Ok(array) = self.body.get_array(name) else {
            return (None, 0);
        };
        let mut all = array.into_iter().flatten();
        let first = all.next().and_then(mongodb::bson::RawBsonRef::as_document);
        let count = all.count() + usize::from(first.is_some());
        (first, i32::try_from(count).unwrap_or(i32::MAX))
    }
}

/// Gives the length of the message that a buffer begins with, once that has come.
pub fn length(inbox: &[u8]) -> Result<Option<usize>, Broken> {
    if inbox.len() < 4 {
        return Ok(None);
    }
    let length = size(inbox)?;
    if length < HEADER {
        return Err(Broken);
    }
    Ok(Some(length))
}

/// Appends a reply.
pub fn put_reply(outbox: &mut Vec<u8>, sender: Sender, document: &RawDocument) {
    let begin = outbox.len();
    let kind = if sender.is_query { OP_REPLY } else { OP_MSG };
    for number in [0, 0, sender.id, kind] {
        outbox.extend(number.to_le_bytes());
    }
    if sender.is_query {
        // Flags, a cursor of eight bytes, where it starts, how many documents.
        for number in [AWAIT_CAPABLE, 0, 0, 0, 1] {
            outbox.extend(number.to_le_bytes());
        }
    } else {
        outbox.extend([0, 0, 0, 0, BODY]);
    }
    outbox.extend(document.as_bytes());
    let length = i32::try_from(outbox.len() - begin).unwrap_or(i32::MAX);
    if let Some(place) = outbox.get_mut(begin..begin + 4) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

fn int(bytes: &[u8], at: usize) -> Result<i32, Broken> {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>);
    Ok(i32::from_le_bytes(*bytes.ok_or(Broken)?))
}

fn size(bytes: &[u8]) -> Result<usize, Broken> {
    usize::try_from(int(bytes, 0)?).map_err(|_| Broken)
}

fn document(bytes: &[u8]) -> Result<&RawDocument, Broken> {
    RawDocument::from_bytes(bytes).map_err(|_| Broken)
}

#[cfg(test)]
mod tests {
    use mongodb::bson::rawdoc;

    use super::*;

    fn message(flags: u32, sections: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [0, 7, 0, OP_MSG] {
            out.extend(number.to_le_bytes());
        }
        out.extend(flags.to_le_bytes());
        out.extend(sections);
        out
    }

    #[test]
    fn documents_come_beside_the_body_or_within_it() {
        let (body, one) = (rawdoc! { "insert": "c" }, rawdoc! { "_id": "a" });
        let mut sections = vec![BODY];
        sections.extend(body.as_bytes());
        sections.push(DOCUMENTS);
        let name = b"documents\0";
        let size = i32::try_from(4 + name.len() + 2 * one.as_bytes().len()).unwrap();
        sections.extend(size.to_le_bytes());
        sections.extend(name);
        sections.extend([one.as_bytes(), one.as_bytes()].concat());
        let beside = message(MORE_TO_COME, &sections);
        let asked = Asked::read(&beside).unwrap();
        assert_eq!((asked.sender.id, asked.sender.wants_reply), (7, false));
        assert_eq!(asked.documents("documents"), (Some(&*one), 2));

        let body = rawdoc! { "insert": "c", "documents": [rawdoc! { "_id": "a" }] };
        let within = message(0, &[&[BODY], body.as_bytes()].concat());
        let asked = Asked::read(&within).unwrap();
        assert_eq!(asked.documents("documents"), (Some(&*one), 1));
    }

    #[test]
    fn what_is_cut_off_or_of_another_kind_is_no_message() {
        assert!(Asked::read(&message(0, &[BODY, 9, 0, 0, 0])).is_err());
        assert!(Asked::read(&message(0, &[])).is_err());
        assert!(length(&[3, 0, 0, 0]).is_err());
        assert!(matches!(length(&[30, 0, 0, 0]), Ok(Some(30))));
    }
}
