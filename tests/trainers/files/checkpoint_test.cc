#include <sotto/trainers/files/checkpoint.h>

#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/durable_file.h>

#include "support/scratch.h"

namespace sotto::test::checkpoint_test {

namespace {

Checkpoint example(Round round = 120) {
  Checkpoint checkpoint;
  checkpoint.rank = 3;
  checkpoint.nodes = 8;
  checkpoint.round = round;
  checkpoint.agreement = "lr=0.1\n";
  checkpoint.optimizer.assign(50, std::byte{0x5A});
  checkpoint.run.assign(7, std::byte{1});
  return checkpoint;
}

bool equal(const Checkpoint& a, const Checkpoint& b) {
  return a.rank == b.rank && a.nodes == b.nodes && a.round == b.round &&
         a.agreement == b.agreement && a.optimizer == b.optimizer && a.run == b.run;
}

}  // namespace

TEST_CASE("a checkpoint comes back as it was, empty parts included") {
  const auto whole = decode_checkpoint(encode_checkpoint(example()));
  REQUIRE(whole.ok());
  CHECK(equal(*whole, example()));
  const auto empty = decode_checkpoint(encode_checkpoint(Checkpoint()));
  REQUIRE(empty.ok());
  CHECK(equal(*empty, Checkpoint()));
}

TEST_CASE("every flipped bit, every truncation and every extra byte is refused") {
  const auto bytes = encode_checkpoint(example());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    auto damaged = bytes;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    CAPTURE(bit);
    CHECK(decode_checkpoint(damaged).status().fault() == Fault::malformed);
  }
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    CAPTURE(length);
    CHECK(decode_checkpoint(std::span(bytes).first(length)).status().fault() == Fault::malformed);
  }
  auto longer = bytes;
  longer.push_back(std::byte{0});
  CHECK(decode_checkpoint(longer).status().fault() == Fault::malformed);
}

TEST_CASE("a folder keeps a node's newest checkpoint and the one before") {
  const Scratch scratch;
  CheckpointFolder folder(scratch.path() / "saved", 3);
  CHECK(folder.rounds().empty());
  REQUIRE(folder.write(example(100), 0).ok());
  REQUIRE(folder.write(example(120), 100).ok());
  REQUIRE(folder.write(example(140), 120).ok());
  CHECK(folder.rounds() == std::vector<Round>{140, 120});
  const auto back = folder.read(140);
  REQUIRE(back.ok());
  CHECK(equal(*back, example(140)));
  CHECK(folder.read(100).status().fault() == Fault::io);
  CHECK(CheckpointFolder(scratch.path() / "saved", 30).rounds().empty());
}

TEST_CASE("files that are no checkpoint of this node and round are refused by name") {
  const Scratch scratch;
  CheckpointFolder folder(scratch.path().string(), 3);
  scratch.write("node-3.round-5.checkpoint", "something else");
  scratch.write("node-3.round-x.checkpoint", "");
  scratch.write("node-3.round-7.checkpoint.new", "half of one");
  CHECK(folder.rounds() == std::vector<Round>{5});
  const auto read = folder.read(5);
  CHECK(read.status().fault() == Fault::malformed);
  CHECK(contains(read.status().message(), "node-3.round-5.checkpoint"));
  // Renamed by somebody.
  REQUIRE(write_durably((scratch.path() / "node-3.round-9.checkpoint").string(),
                        encode_checkpoint(example(120)))
              .ok());
  CHECK(contains(folder.read(9).status().message(), "round 120 of node 3"));
}

TEST_CASE("a write that fails leaves the old file as it was") {
  const Scratch scratch;
  const auto path = scratch.write("model", "old").string();
  // The name of the new file is taken by a folder.
  std::filesystem::create_directory(path + ".new");
  const std::string text = "new";
  CHECK(write_durably(path, std::as_bytes(std::span(text))).fault() == Fault::io);
  const auto kept = sotto::read_file(path, 100);
  REQUIRE(kept.ok());
  CHECK(kept->size() == 3);
  CHECK((*kept)[0] == std::byte{'o'});
  CHECK(sotto::read_file(path, 2).status().fault() == Fault::io);
  CHECK(sotto::read_file(scratch.path().string(), 100).status().fault() == Fault::io);
}

TEST_CASE("a folder that cannot be made is refused") {
  const Scratch scratch;
  const auto file = scratch.write("file", "").string();
  CHECK(contains(refusal([&] { CheckpointFolder(file + "/below", 0); }), "file/below"));
}

}  // namespace sotto::test::checkpoint_test
