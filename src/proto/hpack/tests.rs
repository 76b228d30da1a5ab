//! Owns the tests of whole field blocks.

use super::{Decoder, Kind, Malformed, Section, table_size_update};

const NO_LIMIT: u32 = u32::MAX;

/// The requests of RFC 7541 C.3 and C.4 and the dynamic table after each; requests lack `:status`.
#[test]
fn requests_of_rfc_7541_c_3_and_c_4() {
    let plain = [
        ("828684410f7777772e6578616d706c652e636f6d", 4, 57),
        ("828684be58086e6f2d6361636865", 5, 110),
        ("828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565", 5, 164),
    ];
    let coded = [
        ("828684418cf1e3c2e5f23a6ba0ab90f4ff", 4, 57),
        ("828684be5886a8eb10649cbf", 5, 110),
        ("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf", 5, 164),
    ];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::new(4096, NO_LIMIT);
        for (block, fields, table) in blocks {
            let section = decoder.decode(&hex(block), Kind::Response).unwrap();
            assert_eq!(section.fields, fields, "{block}");
            assert_eq!(section.malformed, Some(Malformed::UnknownPseudoHeader));
            assert_eq!(decoder.table_bytes(), table, "{block}");
        }
    }
}

/// The responses of RFC 7541 C.5 and C.6, whose table of 256 bytes evicts.
#[test]
fn responses_of_rfc_7541_c_5_and_c_6() {
    let plain = [
        "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d",
        "4803333037c1c0bf",
        "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
    ];
    let coded = [
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
        "4883640effc1c0bf",
        "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
    ];
    let after = [(302, 4, 222, 222), (307, 4, 222, 222), (200, 6, 372, 215)];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::new(256, NO_LIMIT);
        decoder.settings_acknowledged();
        for (number, (block, (status, fields, size, table))) in blocks.into_iter().zip(after).enumerate() {
            let mut block = hex(block);
            if number == 0 {
                let mut update = Vec::new();
                table_size_update(256, &mut update);
                block.splice(..0, update);
            }
            let section = decoder.decode(&block, Kind::Response);
            let expected = Section { status, fields, size, content_length: None, malformed: None };
            assert_eq!(section, Ok(expected), "block {number}");
            assert_eq!(decoder.table_bytes(), table, "block {number}");
        }
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hexadecimal digit") as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
