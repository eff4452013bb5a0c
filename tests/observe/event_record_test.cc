// The records of TensorBoard's files, against the formats' own words.
#include <sotto/observe/event_record.h>

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "observe/observed.h"
#include "support/skip.h"

namespace sotto::test::event_record_test {

TEST_CASE("CRC32C and its mask have their known answers") {
  if (!has_event_records()) {
    SOTTO_SKIP("this build has no ISA-L");
  }
  CHECK(crc32c("123456789") == 0xE3069283U);
  CHECK(crc32c("") == 0);
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AAU);  // RFC 3720, B.4
  CHECK(crc32c(std::string(32, '\xff')) == 0x62A8AB43U);
  // The mask of LevelDB's and TFRecord's formats: rotate right by 15, add 0xa282ead8.
  const std::uint32_t crc = 0xE3069283U;
  CHECK(masked_crc32c("123456789") == ((crc >> 15U | crc << 17U) + 0xa282ead8U));
}

TEST_CASE("an event record is the protocol buffer that its schema says") {
  if (!has_event_records()) {
    SOTTO_SKIP("this build has no ISA-L");
  }
  const std::vector<EventScalar> scalars = {{"a", 1.5F}};
  const auto data = records_of(scalars_record(2.0, 300, scalars)).at(0);
  const std::string expected(
      "\x09\x00\x00\x00\x00\x00\x00\x00\x40"  // 1: wall_time, double
      "\x10\xac\x02"                          // 2: step, varint
      "\x2a\x0a"                              // 5: summary
      "\x0a\x08"                              // 1: value
      "\x0a\x01"
      "a"                      // 1: tag
      "\x15\x00\x00\xc0\x3f",  // 2: simple_value, float
      9 + 3 + 2 + 2 + 3 + 5);
  CHECK(data == expected);
  CHECK(records_of(version_record(2.0)).at(0).find("brain.Event:2") != std::string::npos);
}

}  // namespace sotto::test::event_record_test
