// A site's audit file: lines that follow from each other, whatever becomes of the file meanwhile.
#include <sotto/sites/nodes/report/audit_log.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/digest.h>

#include "support/scratch.h"
#include "support/text_of_file.h"

namespace sotto::test::audit_log_test {

namespace {

namespace fs = std::filesystem;

SiteEvent event(const std::string& text) {
  return {.level = SiteEvent::Level::info,
          .kind = SiteEvent::Kind::peer_up,
          .text = text,
          .peer = "bank"};
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::istringstream in(text_of_file(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

void write_lines(const fs::path& path, const std::vector<std::string>& lines) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  for (const std::string& line : lines) {
    out << line << '\n';
  }
}

}  // namespace

TEST_CASE("an audit file's digests are what its header says, and every change is found") {
  const Scratch scratch;
  const auto path = scratch.path() / "audit";
  {
    AuditLog audit(path.string(), "hospital");
    for (int k = 0; k < 12; ++k) {
      REQUIRE(audit.record(event("number " + std::to_string(k) + " \"quoted\"\n\xFF")).ok());
    }
    const auto head = check_audit(path.string());
    REQUIRE(head.ok());
    CHECK(head->records == 13);
    CHECK(head->number == 13);
    CHECK(head->digest == audit.head().digest);
  }
  CHECK((fs::status(path).permissions() & fs::perms::mask) ==
        (fs::perms::owner_read | fs::perms::owner_write));
  const auto lines = lines_of(path);
  REQUIRE(lines.size() == 13);
  // By hand, as the header of audit_log.h has it.
  std::string before(64, '0');
  for (const std::string& line : lines) {
    const std::string text = before + "\n" + line.substr(65);
    before = sha256_hex(std::as_bytes(std::span(text)));
    CHECK(line.substr(0, 64) == before);
  }
  std::mt19937 random(20261126);
  INFO("seed 20261126");
  for (int trial = 0; trial < 200; ++trial) {
    auto changed = lines;
    const std::size_t at = random() % lines.size();
    switch (random() % 4) {
      case 0:
        if (at + 1 == lines.size()) {
          continue;  // the end alone is no break: whoever notes the last digest sees it
        }
        changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        changed[at][random() % changed[at].size()] ^= 1;
        break;
      case 2:
        std::swap(changed[at], changed[(at + 1) % lines.size()]);
        break;
      default:
        changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(at), changed[at]);
    }
    CAPTURE(trial);
    write_lines(path, changed);
    CHECK(check_audit(path.string()).status().fault() == Fault::malformed);
    CHECK(contains(refusal([&] { const AuditLog audit(path.string(), "hospital"); }), "evidence"));
  }
}

TEST_CASE("an audit goes on after a restart, a crash in a line, mv, and copytruncate") {
  const Scratch scratch;
  const auto path = scratch.path() / "audit";
  std::string digest;
  {
    AuditLog audit(path.string(), "hospital");
    REQUIRE(audit.record(event("one")).ok());
    digest = audit.head().digest;
  }
  {
    const AuditLog audit(path.string(), "hospital");
    CHECK(audit.head().digest == digest);
    CHECK(audit.head().number == 2);
  }
  // A crash in the middle of a line.
  std::ofstream(path, std::ios::app) << "0123456789 {\"numb";
  CHECK(check_audit(path.string()).status().fault() == Fault::malformed);
  AuditLog audit(path.string(), "hospital");
  CHECK(check_audit(path.string()).ok());
  CHECK(contains(lines_of(path).back(), "audit-cut"));
  // Moved away: the next file goes on from the last digest.
  digest = audit.head().digest;
  fs::rename(path, path.string() + ".1");
  REQUIRE(audit.record(event("two")).ok());
  REQUIRE(check_audit(path.string()).ok());
  CHECK(check_audit(path.string() + ".1")->digest == digest);
  CHECK(contains(lines_of(path).front(), "\"previous\":\"" + digest + "\""));
  CHECK(contains(lines_of(path).front(), "\"number\":4"));
  // Copied, and truncated in place.
  digest = audit.head().digest;
  fs::copy_file(path, path.string() + ".2");
  fs::resize_file(path, 0);
  REQUIRE(audit.record(event("three")).ok());
  REQUIRE(check_audit(path.string()).ok());
  CHECK(contains(lines_of(path).front(), "\"previous\":\"" + digest + "\""));
  // Replaced by something else: nothing is appended to that.
  fs::remove(path);
  scratch.write("audit", "something else\n");
  CHECK(audit.record(event("four")).fault() == Fault::io);
  CHECK(text_of_file(path) == "something else\n");
  fs::remove(path);
  REQUIRE(audit.record(event("five")).ok());
  CHECK(contains(lines_of(path).back(), "\"missing\":1"));
  CHECK(check_audit(path.string()).ok());
}

TEST_CASE("a full disk leaves no half of an audit's line, and the next one says what is missing") {
  const Scratch scratch;
  const auto path = scratch.path() / "audit";
  AuditLog audit(path.string(), "hospital");
  REQUIRE(audit.record(event("before")).ok());
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  auto* const old = std::signal(SIGXFSZ, SIG_IGN);
  rlimit now = before;
  now.rlim_cur = fs::file_size(path) + 30;
  ::setrlimit(RLIMIT_FSIZE, &now);
  CHECK(audit.record(event("lost")).fault() == Fault::io);
  CHECK(audit.record(event("lost too")).fault() == Fault::io);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  CHECK(lines_of(path).size() == 2);
  REQUIRE(audit.record(event("after")).ok());
  CHECK(contains(lines_of(path).back(), "\"missing\":2"));
  CHECK(check_audit(path.string()).ok());
}

TEST_CASE("an audit has who was let in, refused or revoked, lists, offences and exports") {
  using Kind = SiteEvent::Kind;
  const auto concerns = [](Kind kind) {
    return AuditLog::concerns({SiteEvent::Level::info, kind, "text"});
  };
  for (const Kind kind :
       {Kind::peer_up, Kind::peer_down, Kind::peer_refused, Kind::key_refused, Kind::list_in_force,
        Kind::peer_offence, Kind::peer_barred, Kind::exported, Kind::ended}) {
    CAPTURE(name_of(kind));
    CHECK(concerns(kind));
  }
  CHECK_FALSE(concerns(Kind::round));
  CHECK_FALSE(concerns(Kind::loss_jump));
}

TEST_CASE("an audit file is nobody else's") {
  const Scratch scratch;
  const auto victim = scratch.write("victim", "precious");
  const auto link = (scratch.path() / "link").string();
  fs::create_symlink(victim, link);
  CHECK(contains(refusal([&] { const AuditLog audit(link, "a"); }), "no regular file"));
  const auto open = scratch.write("open", "");
  fs::permissions(open, fs::perms::others_write, fs::perm_options::add);
  CHECK(contains(refusal([&] { const AuditLog audit(open.string(), "a"); }), "chmod go-w"));
  CHECK(contains(refusal([&] { const AuditLog audit("/nowhere/audit", "a"); }), "opened"));
}

}  // namespace sotto::test::audit_log_test
