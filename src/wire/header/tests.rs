use super::{RequestHeader, correlation_id, response, take_request, unsupported_api_versions};
use crate::wire::{Api, Malformed};
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, ApiVersionsResponse, RequestHeader as Theirs, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes, encode_request_header_into_buffer};

/// Every API and version, with and without a client id: C-111.
#[test]
fn headers_of_an_independent_codec_are_taken_off() {
    for &api in Api::ALL {
        let range = api.versions();
        for version in range.lowest..=range.highest {
            for client in [None, Some(""), Some("a client")] {
                let theirs = Theirs::default()
                    .with_request_api_key(api.key())
                    .with_request_api_version(version)
                    .with_correlation_id(-7)
                    .with_client_id(client.map(StrBytes::from_static_str));
                let mut frame = BytesMut::new();
                encode_request_header_into_buffer(&mut frame, &theirs).unwrap();
                let header_bytes = frame.len();
                frame.put_slice(b"body");
                let whole = frame.freeze();
                let mut rest = whole.clone();
                let expected = RequestHeader { correlation_id: -7, client_id: client.map(str::to_owned) };
                assert_eq!(take_request(api, version, &mut rest), Ok(expected), "{api} {version}: V-102");
                assert_eq!(&rest[..], b"body", "{api} {version}");
                assert_eq!(correlation_id(&whole), Ok(-7));
                for cut in 0..header_bytes {
                    let mut short = whole.slice(..cut);
                    assert_eq!(take_request(api, version, &mut short), Err(Malformed::Truncated), "cut at {cut}");
                }
            }
        }
    }
}

#[test]
fn hostile_headers_are_refused() {
    let check = |tail: &[u8], expected: Malformed| {
        let mut frame = BytesMut::from(&[0, 3, 0, 9, 0, 0, 0, 1][..]);
        frame.put_slice(tail);
        assert_eq!(take_request(Api::Metadata, 9, &mut frame.freeze()), Err(expected), "{tail:?}");
    };
    check(&[0xff, 0xfe], Malformed::NegativeLength);
    check(&[0x7f, 0xff, b'x'], Malformed::Truncated);
    check(&[0, 2, 0xc3, 0x28, 0], Malformed::NotUtf8);
    check(&[0, 0, 65], Malformed::TooManyTags);
    check(&[0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f], Malformed::TooManyTags);
    check(&[0, 0, 0xff, 0xff, 0xff, 0xff, 0x1f], Malformed::VarintTooLong);
    check(&[0, 0, 1, 9, 0xff, 0xff, 0xff, 0xff, 0x0f], Malformed::Truncated);
}

#[test]
fn unknown_tags_of_a_header_are_skipped() {
    let mut frame = Bytes::from_static(&[0, 3, 0, 9, 0, 0, 0, 1, 0, 0, 2, 0, 1, b'x', 9, 0, b'b']);
    let header = take_request(Api::Metadata, 9, &mut frame).unwrap();
    assert_eq!(header.client_id.as_deref(), Some(""));
    assert_eq!(&frame[..], b"b");
}

#[test]
fn response_headers_are_read_by_an_independent_codec() {
    for &api in Api::ALL {
        let range = api.versions();
        for version in range.lowest..=range.highest {
            let mut bytes = response(api, version, 77, 3).unwrap();
            let length = bytes::Buf::get_i32(&mut bytes);
            assert_eq!(usize::try_from(length).unwrap(), bytes.len() + 3, "{api} {version}");
            let their_version = ApiKey::try_from(api.key()).unwrap().response_header_version(version);
            let theirs = ResponseHeader::decode(&mut bytes, their_version).unwrap();
            assert_eq!((theirs.correlation_id, bytes.len()), (77, 0), "{api} {version}: V-103");
        }
    }
    assert_eq!(response(Api::Fetch, 4, 0, usize::MAX), None);
    assert_eq!(response(Api::Fetch, 4, 0, 1 << 31), None);
}

/// V-120: exactly one entry, our range of key 18, in a version 0 body.
#[test]
fn a_future_api_versions_is_answered_in_version_0() {
    let mut body = unsupported_api_versions();
    let theirs = ApiVersionsResponse::decode(&mut body, 0).unwrap();
    assert_eq!((theirs.error_code, theirs.api_keys.len(), body.len()), (35, 1, 0));
    let entry = &theirs.api_keys[0];
    assert_eq!((entry.api_key, entry.min_version, entry.max_version), (18, 0, 3));
    let mut again = BytesMut::new();
    theirs.encode(&mut again, 0).unwrap();
    assert_eq!(again.freeze(), unsupported_api_versions());
}
