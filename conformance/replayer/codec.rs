//! Fields to bytes and back, by the schema.

use crate::records;
use crate::schema::{Field, Kind};
use crate::tree::{Tree, Unreadable};

/// Adds the defaults of all fields that `given` leaves out, in the order of the wire, and leaves out what this version
/// does not have. A field that no version has is a mistake.
pub(crate) fn complete(fields: &[Field], version: i16, given: &Tree) -> Result<Tree, Unreadable> {
    let own = given.as_fields().ok_or_else(|| Unreadable(format!("fields are wanted, not {}", given.compact())))?;
    if let Some((name, _)) = own.iter().find(|(name, _)| !fields.iter().any(|field| field.name == *name)) {
        return Err(Unreadable(format!("there is no field `{name}`")));
    }
    let mut whole = Vec::new();
    for field in fields.iter().filter(|field| field.versions.has(version)) {
        match given.get(&field.name) {
            Some(value) => whole.push((field.name.clone(), complete_one(&field.kind, version, value)?)),
            None if field.tag.is_none() => whole.push((field.name.clone(), field.default.clone())),
            None => {}
        }
    }
    Ok(Tree::Fields(whole))
}

fn complete_one(kind: &Kind, version: i16, value: &Tree) -> Result<Tree, Unreadable> {
    match (kind, value) {
        (Kind::Fields(fields), Tree::Fields(_)) => complete(fields, version, value),
        (Kind::List(item), Tree::List(list)) => {
            list.iter().map(|value| complete_one(item, version, value)).collect::<Result<_, _>>().map(Tree::List)
        }
        (_, value) => Ok(value.clone()),
    }
}

/// How the fields of one version are put down.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    pub(crate) version: i16,
    pub(crate) flexible: bool,
    /// When batches are made that do not say it themselves.
    pub(crate) now_ms: i64,
}

impl Form {
    /// The bytes of fields that [`complete`] has completed.
    pub(crate) fn encode(self, fields: &[Field], tree: &Tree, out: &mut Vec<u8>) -> Result<(), Unreadable> {
        let mut tags = Vec::new();
        for field in fields.iter().filter(|field| field.versions.has(self.version)) {
            let Some(value) = tree.get(&field.name) else { continue };
            let wrong = |why: Unreadable| Unreadable(format!("{}: {why}", field.name));
            match field.tag {
                None => self.put(field, &field.kind, value, out).map_err(wrong)?,
                Some(tag) => {
                    let mut bytes = Vec::new();
                    self.put(field, &field.kind, value, &mut bytes).map_err(wrong)?;
                    tags.push((tag, bytes));
                }
            }
        }
        if self.flexible {
            put_uvarint(tags.len(), out);
            for (tag, bytes) in tags {
                put_uvarint(tag as usize, out);
                put_uvarint(bytes.len(), out);
                out.extend(bytes);
            }
        }
        Ok(())
    }

    fn put(self, field: &Field, kind: &Kind, value: &Tree, out: &mut Vec<u8>) -> Result<(), Unreadable> {
        let no = || Unreadable(format!("{} does not fit", value.compact()));
        let int = || value.as_int().ok_or_else(no);
        match kind {
            Kind::Bool => out.push(u8::from(*value == Tree::Bool(true))),
            Kind::Int8 => out.extend(i8::try_from(int()?).map_err(|_| no())?.to_be_bytes()),
            Kind::Int16 => out.extend(i16::try_from(int()?).map_err(|_| no())?.to_be_bytes()),
            Kind::Int32 => out.extend(i32::try_from(int()?).map_err(|_| no())?.to_be_bytes()),
            Kind::Int64 => out.extend(int()?.to_be_bytes()),
            Kind::Uuid => out.extend(unhex(&value.as_text().ok_or_else(no)?.replace('-', ""))?),
            Kind::Fields(fields) if field.nullable.is_some() => {
                out.push(if *value == Tree::Null { 0xff } else { 1 });
                if *value != Tree::Null {
                    self.encode(fields, value, out)?;
                }
            }
            Kind::Fields(fields) => self.encode(fields, value, out)?,
            Kind::Text | Kind::Bytes | Kind::Records | Kind::List(_) if *value == Tree::Null => {
                self.put_length(kind, None, out);
            }
            Kind::Text => {
                let text = value.as_text().ok_or_else(no)?;
                self.put_length(kind, Some(text.len()), out);
                out.extend(text.as_bytes());
            }
            Kind::Bytes => {
                let bytes = unhex(value.as_text().ok_or_else(no)?)?;
                self.put_length(kind, Some(bytes.len()), out);
                out.extend(bytes);
            }
            Kind::Records => {
                let bytes = records::encode(value, self.now_ms)?;
                self.put_length(kind, Some(bytes.len()), out);
                out.extend(bytes);
            }
            Kind::List(item) => {
                let list = value.as_list().ok_or_else(no)?;
                self.put_length(kind, Some(list.len()), out);
                for value in list {
                    match item.as_ref() {
                        Kind::Fields(fields) => self.encode(fields, value, out)?,
                        plain => self.put(field, plain, value, out)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn put_length(self, kind: &Kind, length: Option<usize>, out: &mut Vec<u8>) {
        let plain = length.map_or(-1, |length| i32::try_from(length).unwrap());
        match kind {
            _ if self.flexible => put_uvarint(length.map_or(0, |length| length + 1), out),
            Kind::Text => out.extend(i16::try_from(plain).unwrap().to_be_bytes()),
            _ => out.extend(plain.to_be_bytes()),
        }
    }

    /// The fields in front of `bytes`.
    pub(crate) fn decode(self, fields: &[Field], bytes: &mut Bytes<'_>) -> Result<Tree, Unreadable> {
        let mut found = Vec::new();
        for field in fields.iter().filter(|field| field.versions.has(self.version) && field.tag.is_none()) {
            let value = self.take(field, &field.kind, bytes);
            found.push((field.name.clone(), value.map_err(|why| Unreadable(format!("{}: {why}", field.name)))?));
        }
        if self.flexible {
            for _ in 0..bytes.uvarint()? {
                let tag = u32::try_from(bytes.uvarint()?).unwrap();
                let length = bytes.uvarint()?;
                let mut own = Bytes(bytes.take(length)?);
                match fields.iter().find(|field| field.tag == Some(tag) && field.versions.has(self.version)) {
                    Some(field) => found.push((field.name.clone(), self.take(field, &field.kind, &mut own)?)),
                    None => found.push((format!("tag {tag}"), Tree::Text(hex(own.0)))),
                }
            }
        }
        Ok(Tree::Fields(found))
    }

    fn take(self, field: &Field, kind: &Kind, bytes: &mut Bytes<'_>) -> Result<Tree, Unreadable> {
        Ok(match kind {
            Kind::Bool => Tree::Bool(bytes.int(1)? != 0),
            Kind::Int8 => Tree::Int(bytes.int(1)?),
            Kind::Int16 => Tree::Int(bytes.int(2)?),
            Kind::Int32 => Tree::Int(bytes.int(4)?),
            Kind::Int64 => Tree::Int(bytes.int(8)?),
            Kind::Uuid => {
                let digits = hex(bytes.take(16)?);
                let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
                Tree::Text(parts.join("-"))
            }
            Kind::Fields(_) if field.nullable.is_some() && bytes.int(1)? < 0 => Tree::Null,
            Kind::Fields(fields) => self.decode(fields, bytes)?,
            Kind::Text | Kind::Bytes | Kind::Records | Kind::List(_) => match self.length(kind, bytes)? {
                None => Tree::Null,
                Some(length) => self.take_sized(field, kind, length, bytes)?,
            },
        })
    }

    fn length(self, kind: &Kind, bytes: &mut Bytes<'_>) -> Result<Option<usize>, Unreadable> {
        if self.flexible {
            return Ok(bytes.uvarint()?.checked_sub(1));
        }
        let length = if matches!(kind, Kind::Text) { bytes.int(2)? } else { bytes.int(4)? };
        Ok(usize::try_from(length).ok())
    }

    fn take_sized(self, field: &Field, kind: &Kind, size: usize, bytes: &mut Bytes<'_>) -> Result<Tree, Unreadable> {
        if let Kind::List(item) = kind {
            let mut list = Vec::new();
            for _ in 0..size {
                list.push(match item.as_ref() {
                    Kind::Fields(fields) => self.decode(fields, bytes)?,
                    plain => self.take(field, plain, bytes)?,
                });
            }
            return Ok(Tree::List(list));
        }
        let own = bytes.take(size)?;
        Ok(match kind {
            Kind::Text => Tree::Text(String::from_utf8_lossy(own).into_owned()),
            Kind::Records => records::decode(own)?,
            _ => Tree::Text(hex(own)),
        })
    }
}

/// Bytes that are read from the front.
#[derive(Debug)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn take(&mut self, size: usize) -> Result<&'a [u8], Unreadable> {
        let (own, rest) = self.0.split_at_checked(size).ok_or_else(|| Unreadable("too few bytes".to_owned()))?;
        self.0 = rest;
        Ok(own)
    }

    /// A number of so many bytes, with its sign.
    pub(crate) fn int(&mut self, size: usize) -> Result<i64, Unreadable> {
        let own = self.take(size)?;
        let start = if own.first().is_some_and(|byte| *byte >= 0x80) { -1 } else { 0 };
        Ok(own.iter().fold(start, |number, byte| (number << 8) | i64::from(*byte)))
    }

    pub(crate) fn uvarint(&mut self) -> Result<usize, Unreadable> {
        let mut number = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.take(1)?[0];
            number |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Unreadable("a length without end".to_owned()))
    }

    /// A number in zigzag form.
    pub(crate) fn varint(&mut self) -> Result<i64, Unreadable> {
        let mut number = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed());
            }
        }
        Err(Unreadable("a number without end".to_owned()))
    }
}

pub(crate) fn put_uvarint(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn put_varint(number: i64, out: &mut Vec<u8>) {
    let mut zigzag = ((number << 1) ^ (number >> 63)).cast_unsigned();
    while zigzag >= 0x80 {
        out.push((zigzag & 0x7f) as u8 | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(digits: &str) -> Result<Vec<u8>, Unreadable> {
    let byte = |at| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes = (0..digits.len()).step_by(2).map(byte).collect::<Option<_>>();
    bytes.ok_or_else(|| Unreadable(format!("`{digits}` is not hexadecimal")))
}
