// Files that break one rule each, their checksums right where they have any: who can write a file
// can write one whose checksums are right.
#include <xxhash.h>

#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/sites/nodes/state/site_state_file.h>
#include <sotto/trainers/files/checkpoint.h>

#include "../../trainers/data/loaders/idx.h"
#include "../../trainers/internal/run/run_state.h"
#include "support/scratch.h"
#include "trainers/gzip.h"

namespace sotto::test::bad_inputs_test {

namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kHeaderBytes = 40;
constexpr std::size_t kSectionBytes = 24;
constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

Bytes a_state() {
  return encode_site_state({.life = 3,
                            .number = 2,
                            .round = 9,
                            .settings = "lr=0.1\n",
                            .site = Bytes(40, std::byte{1}),
                            .run = Bytes(40, std::byte{2})});
}

template <typename T>
Bytes with(Bytes file, std::size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
  const std::uint64_t sum = XXH3_64bits(file.data(), kHeaderBytes - sizeof(std::uint64_t));
  std::memcpy(file.data() + kHeaderBytes - sizeof sum, &sum, sizeof sum);
  return file;
}

/// Neither read nor found whole, in memory in proportion to the file.
void check_refused(const Bytes& file) {
  CHECK(decode_site_state(file).status().fault() == Fault::malformed);
  CHECK(decode_checkpoint(file).status().fault() == Fault::malformed);
  const test::Scratch scratch;
  const auto path = scratch.write(
      "state", std::string_view(reinterpret_cast<const char*>(file.data()), file.size()));
  const std::array<const FileKind*, 2> kinds = {&checkpoint_kind(), &site_state_kind()};
  const auto report = inspect_file(path.string(), kinds);
  CHECK((!report.ok() || !report->trouble.empty()));
}

}  // namespace

TEST_CASE("bad input: a state's magic, version, endianness, sections and reserved words") {
  const Bytes right = a_state();
  REQUIRE(decode_site_state(right).ok());
  check_refused(with(right, 0, std::uint64_t{0}));
  for (const std::uint32_t version : {0U, 2U, 1U << 24U, 0xFFFFFFFFU}) {
    check_refused(with(right, 8, version));
  }
  for (const std::uint32_t sections : {0U, 2U, 4U, 3U << 24U, 0xFFFFFFFFU}) {
    check_refused(with(right, 12, sections));
  }
  for (const std::uint32_t id : {0U, 2U, 0xFFFFFFFFU}) {
    check_refused(with(right, kHeaderBytes, id));
  }
  check_refused(with(right, kHeaderBytes + 4, std::uint32_t{1}));
}

TEST_CASE("bad input: a state's lengths of 2^62 and 2^64-1, offset + length that wraps") {
  const Bytes right = a_state();
  for (const std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{6}, std::uint64_t{8}, std::uint64_t{0xFFFFFFFF},
        std::uint64_t{1} << 62U, std::uint64_t{1} << 63U, kMost, kMost - kHeaderBytes,
        kMost - kHeaderBytes - kSectionBytes + 1}) {
    CAPTURE(length);
    check_refused(with(right, kHeaderBytes + 8, length));
  }
}

TEST_CASE("bad input: every truncation and trailing bytes of a state") {
  const Bytes right = a_state();
  for (std::size_t size = 0; size < right.size(); ++size) {
    CAPTURE(size);
    check_refused(Bytes(right.begin(), right.begin() + static_cast<std::ptrdiff_t>(size)));
  }
  Bytes longer = right;
  longer.push_back(std::byte{0});
  check_refused(longer);
}

TEST_CASE("bad input: counts of 0xFFFFFFFF and beyond in a run's history") {
  ByteBuffer out;
  internal::write_run_state({.wall_s = 1, .compute_s = 2, .history = {{}}}, out);
  const Bytes right(out.bytes().begin(), out.bytes().end());
  ByteReader whole(right);
  REQUIRE(internal::read_run_state(whole).ok());
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{0xFFFFFFFF},
                                    std::uint64_t{1} << 62U, kMost, kMost / 48 + 1}) {
    CAPTURE(count);
    Bytes forged = right;
    std::memcpy(forged.data() + 16, &count, sizeof count);
    ByteReader in(forged);
    CHECK(internal::read_run_state(in).status().fault() == Fault::malformed);
  }
}

TEST_CASE("bad input: more than 8 dimensions, and extents of 0 and 0xFFFFFFFF") {
  const test::Scratch scratch;
  const auto refused = [&](std::string_view header, std::size_t dimensions) {
    std::string file(header);
    file.resize(file.size() + 100);
    CHECK_THROWS_AS((void)read_idx(scratch.write("array", file), dimensions), Error);
  };
  for (const char dimensions : {'\0', '\x01', '\x02', '\x04', '\x09', '\xFF'}) {
    refused(std::string("\0\0\x08", 3) + dimensions + std::string(36, '\x01'), 3);
  }
  const std::string start("\0\0\x08\x03", 4);
  refused(start + std::string(12, '\xFF'), 3);                            // wraps
  refused(start + std::string("\0\x10\0\0\0\x10\0\0\0\x10\0\0", 12), 3);  // 2^60
  refused(start + std::string("\x80\0\0\0\x80\0\0\0\0\0\0\x04", 12), 3);  // 2^64
  refused(start + std::string("\0\0\0\0\0\0\0\x01\0\0\0\x01", 12), 3);    // none
}

TEST_CASE("bad input: an expansion bomb: what a packed file may become is capped beforehand") {
  const test::Scratch scratch;
  const std::string header("\0\0\x08\x03\0\0\x04\0\0\0\x04\0\0\0\x04\0", 16);  // 2^30 values
  const std::string bomb = test::gzip(header + std::string(1 << 20, '\0'));
  REQUIRE(bomb.size() < 4096);
  CHECK_THROWS_AS((void)read_idx(scratch.write("bomb.gz", bomb), 3), Error);
  // And one that holds more than it says.
  const std::string small("\0\0\x08\x03\0\0\0\x01\0\0\0\x01\0\0\0\x01", 16);
  CHECK_THROWS_AS(
      (void)read_idx(scratch.write("more.gz", test::gzip(small + std::string(1 << 20, '\0'))), 3),
      Error);
}

}  // namespace sotto::test::bad_inputs_test
