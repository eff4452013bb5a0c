// What a site keeps between its lives: whole or refused, by one process at a time.
#include <sotto/sites/nodes/state/site_folder.h>

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/durable_file.h>
#include <sotto/trainers/files/checkpoint.h>

#include "support/scratch.h"

namespace sotto::test::site_folder_test {

namespace {

SiteStateFile example(Round round = 7) {
  return {.life = 3,
          .number = 9,
          .round = round,
          .settings = "lr=0.1\nseed=0\n",
          .site = std::vector<std::byte>(60, std::byte{0x5A}),
          .run = std::vector<std::byte>(9, std::byte{2})};
}

void flip(const std::filesystem::path& path, std::size_t at) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(at));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 1));
}

/// While it lives, no file of this process may grow beyond `bytes`; as a full disk, writing fails.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now = before_;
    now.rlim_cur = bytes;
    old_ = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, old_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*old_)(int) = nullptr;
};

}  // namespace

TEST_CASE("a site's state comes back as it was") {
  const auto back = decode_site_state(encode_site_state(example()));
  REQUIRE(back.ok());
  CHECK(back->life == 3);
  CHECK(back->number == 9);
  CHECK(back->round == 7);
  CHECK(back->settings == example().settings);
  CHECK(back->site == example().site);
  CHECK(back->run == example().run);
}

TEST_CASE("a flipped bit anywhere: a site's state is refused, and so is every truncation") {
  const auto bytes = encode_site_state(example());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    auto damaged = bytes;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    CAPTURE(bit);
    CHECK(decode_site_state(damaged).status().fault() == Fault::malformed);
  }
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    CAPTURE(length);
    CHECK(decode_site_state(std::span(bytes).first(length)).status().fault() == Fault::malformed);
  }
  auto longer = bytes;
  longer.push_back(std::byte{0});
  CHECK(decode_site_state(longer).status().fault() == Fault::malformed);
  CHECK(decode_site_state(encode_checkpoint(Checkpoint())).status().fault() == Fault::malformed);
}

TEST_CASE("a folder gives back the newest state, and the one before where the newest is damaged") {
  const Scratch scratch;
  const auto path = scratch.path() / "state";
  {
    SiteFolder folder(path.string());
    const auto none = folder.read();
    REQUIRE(none.ok());
    CHECK_FALSE(none->has_value());
    for (Round round = 1; round <= 3; ++round) {
      REQUIRE(folder.write(example(round)).ok());
    }
    CHECK(folder.written_at() > 0);
  }
  {
    SiteFolder folder(path.string());
    const auto found = folder.read();
    REQUIRE((found.ok() && found->has_value()));
    CHECK((*found)->state.round == 3);
    CHECK((*found)->warning.empty());
  }
  flip(path / "state.a", 70);  // the third
  {
    SiteFolder folder(path.string());
    const auto found = folder.read();
    REQUIRE((found.ok() && found->has_value()));
    CHECK((*found)->state.round == 2);
    CHECK(contains((*found)->warning, "state.a"));
    CHECK(contains((*found)->warning, "damaged"));
    REQUIRE(folder.write(example(4)).ok());  // over the damaged one
    const auto kept =
        decode_site_state(*sotto::read_file((path / "state.b").string(), std::size_t{1} << 20));
    REQUIRE(kept.ok());
    CHECK(kept->round == 2);
  }
  flip(path / "state.a", 70);
  flip(path / "state.b", 70);
  SiteFolder folder(path.string());
  const auto none = folder.read();
  CHECK(none.status().fault() == Fault::malformed);
  CHECK(contains(none.status().message(), "start anew"));
}

TEST_CASE("states that are damaged are set aside and the next ones take their places") {
  namespace fs = std::filesystem;
  const Scratch scratch;
  const auto path = scratch.path() / "state";
  SiteFolder folder(path.string());
  REQUIRE(folder.write(example(1)).ok());
  REQUIRE(folder.write(example(2)).ok());
  CHECK(folder.set_aside_damaged().value().empty());
  flip(path / "state.b", 70);
  const auto one = folder.set_aside_damaged();
  REQUIRE(one.ok());
  CHECK(contains(*one, "damaged"));
  CHECK(contains(*one, "state.b.damaged"));
  CHECK_FALSE(contains(*one, "state.a"));
  CHECK_FALSE(fs::exists(path / "state.b"));
  CHECK(folder.read().value()->state.round == 1);
  CHECK(folder.read().value()->warning.empty());
  flip(path / "state.a", 70);
  CHECK(contains(folder.set_aside_damaged().value(), "state.a.damaged"));
  CHECK_FALSE(folder.read().value().has_value());
  CHECK(folder.set_aside_damaged().value().empty());
  // A second one that is damaged takes the place of the first.
  for (const Round round : {Round{3}, Round{4}}) {
    REQUIRE(folder.write(example(round)).ok());
  }
  CHECK(folder.read().value()->state.round == 4);
  flip(path / "state.a", 70);
  flip(path / "state.b", 70);
  const auto both = folder.set_aside_damaged();
  REQUIRE(both.ok());
  CHECK(contains(*both, "state.a.damaged; "));
  CHECK(contains(*both, "state.b.damaged"));
  // What another version of the program has written is not damaged, and stays.
  REQUIRE(folder.write(example(5)).ok());
  const auto written = fs::exists(path / "state.a") ? path / "state.a" : path / "state.b";
  flip(written, 8);  // the format's number
  CHECK(folder.set_aside_damaged().value().empty());
  CHECK(fs::exists(written));
  CHECK_FALSE(folder.read().ok());
}

TEST_CASE("a folder belongs to one process at a time, and counts its starts") {
  const Scratch scratch;
  const auto path = (scratch.path() / "state").string();
  std::uint32_t before = 0;
  {
    const SiteFolder folder(path);
    before = folder.life();
    CHECK(folder.clock_behind_s() == 0);
    CHECK(contains(refusal([&] { const SiteFolder second(path); }), "is the site running"));
  }
  CHECK(SiteFolder(path).life() > before);
  // A folder put back from a backup is still ahead of the process that ran before.
  scratch.write("state/life", "1\n");
  CHECK(SiteFolder(path).life() >= before);
  // So is a start after the clock went back.
  scratch.write("state/life", "4000000000\n");
  CHECK(SiteFolder(path).life() == 4000000001U);
  CHECK(SiteFolder(path).clock_behind_s() > 3'900'000'000U - 1'000'000'000U);
  for (const char* wrong : {"", "x\n", "4294967295\n", "1", "99999999999999999\n", "-1\n"}) {
    CAPTURE(wrong);
    scratch.write("state/life", wrong);
    CHECK(contains(refusal([&] { const SiteFolder refused(path); }), "'life'"));
  }
  const auto file = scratch.write("file", "").string();
  CHECK(contains(refusal([&] { const SiteFolder refused(file); }), "file"));
}

TEST_CASE("nobody but its owner can read or change what a folder holds, nor lead it elsewhere") {
  namespace fs = std::filesystem;
  const Scratch scratch;
  const auto path = scratch.path() / "state";
  const auto mode_of = [](const fs::path& file) {
    return static_cast<unsigned>(fs::status(file).permissions());
  };
  {
    SiteFolder folder(path.string());
    REQUIRE(folder.read().ok());
    REQUIRE(folder.write(example(1)).ok());
  }
  CHECK(mode_of(path) == 0700U);
  for (const char* name : {"life", "lock", "state.a"}) {
    CAPTURE(name);
    CHECK(mode_of(path / name) == 0600U);
  }
  for (const fs::path& open : {path, path / "state.a", path / "life", path / "lock"}) {
    for (const fs::perms who : {fs::perms::others_write, fs::perms::group_write}) {
      CAPTURE(open.string());
      fs::permissions(open, who, fs::perm_options::add);
      CHECK(contains(refusal([&] { const SiteFolder refused(path.string()); }), "chmod go-w"));
      fs::permissions(open, who, fs::perm_options::remove);
    }
  }
  // Where anybody can put another folder in its place, that is said.
  CHECK(SiteFolder(path.string()).doubt().empty());
  fs::permissions(scratch.path(), fs::perms::others_write, fs::perm_options::add);
  CHECK(contains(SiteFolder(path.string()).doubt(), "chmod o-w"));
  fs::permissions(scratch.path(), fs::perms::sticky_bit, fs::perm_options::add);
  CHECK(SiteFolder(path.string()).doubt().empty());
  fs::permissions(scratch.path(), fs::perms::others_write | fs::perms::sticky_bit,
                  fs::perm_options::remove);
  // A link in place of a file leads to what is not the site's.
  const auto victim = scratch.write("victim", "precious");
  for (const char* name : {"state.b", "lock", "privacy"}) {
    CAPTURE(name);
    fs::remove(path / name);
    fs::create_symlink(victim, path / name);
    CHECK(contains(refusal([&] { const SiteFolder refused(path.string()); }), "no regular file"));
    fs::remove(path / name);
  }
  // Nor does one in place of the file that is written beside.
  fs::create_symlink(victim, path / "state.b.new");
  {
    SiteFolder folder(path.string());
    REQUIRE(folder.read().ok());
    REQUIRE(folder.write(example(2)).ok());
  }
  CHECK(fs::is_regular_file(fs::symlink_status(path / "state.b")));
  CHECK(fs::file_size(victim) == 8);
}

TEST_CASE(
    "a file that is replaced keeps its mode, and one for its owner alone has it from the start") {
  namespace fs = std::filesystem;
  const Scratch scratch;
  const std::vector<std::byte> bytes(10);
  const auto path = scratch.write("model", "");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  REQUIRE(write_durably(path.string(), bytes).ok());
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  fs::permissions(path, fs::perms::others_read, fs::perm_options::add);
  REQUIRE(write_durably(path.string(), bytes, FileReaders::owner).ok());
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("ENOSPC: the state before stays, and nothing is written any more") {
  const Scratch scratch;
  const auto path = (scratch.path() / "state").string();
  {
    SiteFolder folder(path);
    REQUIRE(folder.read().ok());
    REQUIRE(folder.write(example(1)).ok());
    REQUIRE(folder.write(example(2)).ok());
    {
      const FullDisk full(100);
      CHECK(folder.write(example(3)).fault() == Fault::io);
    }
    const Status again = folder.write(example(4));
    CHECK(again.fault() == Fault::io);
    CHECK(contains(again.message(), "not saved"));
  }
  SiteFolder folder(path);
  const auto found = folder.read();
  REQUIRE((found.ok() && found->has_value()));
  CHECK((*found)->state.round == 2);
}

TEST_CASE("inspect tells kind, sections and what is damaged") {
  const Scratch scratch;
  const std::vector<const FileKind*> kinds = {&checkpoint_kind(), &site_state_kind()};
  const auto path = (scratch.path() / "state.a").string();
  REQUIRE(write_durably(path, encode_site_state(example())).ok());
  const auto whole = inspect_file(path, kinds);
  REQUIRE(whole.ok());
  CHECK(whole->kind == &site_state_kind());
  CHECK(whole->round == 7);
  CHECK(whole->first == 3);
  CHECK(whole->second == 9);
  CHECK(whole->bytes == encode_site_state(example()).size());
  CHECK(whole->settings == example().settings);
  CHECK(whole->trouble.empty());
  REQUIRE(whole->sections.size() == 3);
  CHECK(whole->sections[1].name == "site");
  CHECK(whole->sections[1].bytes == 60);
  CHECK(whole->sections[1].whole);
  flip(path, 40 + 24 + example().settings.size() + 24 + 5);
  const auto damaged = inspect_file(path, kinds);
  REQUIRE(damaged.ok());
  CHECK(damaged->sections[0].whole);
  CHECK_FALSE(damaged->sections[1].whole);
  CHECK(damaged->sections[2].whole);
  CHECK(contains(damaged->trouble, "'site'"));
  // A length that leads nowhere, and every truncation.
  const auto bytes = encode_site_state(example());
  for (std::size_t length = 40; length < bytes.size(); ++length) {
    REQUIRE(write_durably(path, std::span(bytes).first(length)).ok());
    const auto cut = inspect_file(path, kinds);
    REQUIRE(cut.ok());
    CHECK_FALSE(cut->trouble.empty());
  }
  auto longer = bytes;
  longer.resize(bytes.size() + 1);
  REQUIRE(write_durably(path, longer).ok());
  CHECK(contains(inspect_file(path, kinds)->trouble, "after the last"));
  auto huge = bytes;
  huge[40 + 8 + 7] = std::byte{0x7F};
  REQUIRE(write_durably(path, huge).ok());
  CHECK_FALSE(inspect_file(path, kinds)->sections[0].whole);
  CHECK(inspect_file(scratch.write("x", "no such thing").string(), kinds).status().fault() ==
        Fault::malformed);
  CHECK(inspect_file(scratch.write("y", "SOTOSITE").string(), kinds).status().fault() ==
        Fault::malformed);
  CHECK(inspect_file((scratch.path() / "none").string(), kinds).status().fault() == Fault::io);
  CHECK(inspect_file(scratch.path().string(), kinds).status().fault() == Fault::io);
}

}  // namespace sotto::test::site_folder_test
