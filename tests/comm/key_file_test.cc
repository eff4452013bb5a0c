// Keys, the files that hold them, and the lists of peers.
#include <sotto/comm/trust/key_file.h>
#include <sotto/comm/trust/peers_file.h>
#include <sotto/comm/trust/peers_watch.h>

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/unix_time.h>
#include <sotto/comm/stores.h>

#include "../../comm/internal/z85.h"
#include "nodes.h"
#include "support/scratch.h"
#include "support/text_of_file.h"

namespace sotto::test::key_file_test {

namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
}

template <typename Action>
void check_refused(std::string_view part, const Action& action) {
  CAPTURE(part);
  try {
    action();
    FAIL_CHECK("not refused");
  } catch (const Error& error) {
    CHECK_MESSAGE(std::string_view(error.what()).find(part) != std::string_view::npos,
                  error.what());
  }
}

/// A file that is refused when it holds `text`, for a reason that has `part` in it.
void check_key_text(const fs::path& path, std::string_view part, std::string_view text) {
  write(path, text);
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  check_refused(part, [&] { (void)read_key_file(path.string()); });
}

}  // namespace

TEST_CASE("Z85 writes what its specification shows, and reads nothing else") {
  const std::array<std::uint8_t, 8> hello = {0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B};
  const auto bytes = std::as_bytes(std::span(hello));
  CHECK(internal::z85(bytes) == "HelloWorld");
  std::array<std::byte, 8> back{};
  REQUIRE(internal::read_z85("HelloWorld", back));
  CHECK(std::equal(back.begin(), back.end(), bytes.begin(), bytes.end()));
  for (const auto* text :
       {"", "HelloWorl", "HelloWorld0", "Hello World", "Hello\"orld", "#####00000"}) {
    CAPTURE(text);
    CHECK_FALSE(internal::read_z85(text, back));  // "#####" is 2^32 and more
  }
}

TEST_CASE("a key pair is known by its public half") {
  const KeyPair one = make_key_pair();
  const KeyPair other = make_key_pair();
  CHECK(one.public_key != other.public_key);
  CHECK(one.private_key.public_key() == one.public_key);
  CHECK(one.public_key.text().size() == kKeyCharacters);
  CHECK(PublicKey::parse(one.public_key.text()) == one.public_key);
  CHECK_FALSE(PublicKey::parse(one.public_key.text().substr(1)));
}

TEST_CASE("keys of low order, as which anybody can pose, are not taken") {
  CHECK(make_key_pair().public_key.sound());
  std::array<std::byte, kKeyBytes> bytes{};
  CHECK_FALSE(PublicKey(bytes).sound());
  bytes[0] = std::byte{1};
  const PublicKey weak(bytes);
  CHECK_FALSE(weak.sound());
  CHECK_THROWS_AS(AllowList({{.rank = 0, .key = weak}}), Error);
  CHECK_THROWS_AS(AllowList({TrustedPeer{.rank = 0}}), Error);  // whoever forgot the key
  const Scratch directory;
  write(directory.path() / "peers.csv", "rank,key\n0," + weak.text() + "\n");
  check_refused(":2: key",
                [&] { (void)read_peers_file((directory.path() / "peers.csv").string()); });
}

TEST_CASE("a key file is its owner's alone, is never replaced, and comes back as it was") {
  const Scratch directory;
  const auto path = (directory.path() / "site.key").string();
  const KeyPair keys = make_key_pair();
  write_key_file(path, "site", keys);
  CHECK((fs::status(path).permissions() & fs::perms::mask) ==
        (fs::perms::owner_read | fs::perms::owner_write));
  const KeyPair back = read_key_file(path);
  CHECK(back.public_key == keys.public_key);
  CHECK(std::equal(back.private_key.bytes().begin(), back.private_key.bytes().end(),
                   keys.private_key.bytes().begin()));
  const auto before = text_of_file(path);
  check_refused("there already", [&] { write_key_file(path, "site", make_key_pair()); });
  CHECK(text_of_file(path) == before);
  // A link that stands in its place is not followed.
  const auto link = directory.path() / "link.key";
  fs::create_symlink(directory.path() / "elsewhere", link);
  check_refused("there already", [&] { write_key_file(link.string(), "site", keys); });
  CHECK_FALSE(fs::exists(directory.path() / "elsewhere"));
  check_refused("cannot be written",
                [&] { write_key_file((directory.path() / "no" / "k").string(), "site", keys); });
}

TEST_CASE("a secret that others can read or change is refused") {
  const Scratch directory;
  const auto path = directory.path() / "site.key";
  write_key_file(path.string(), "site", make_key_pair());
  for (const auto mode : {fs::perms::group_read, fs::perms::others_read, fs::perms::group_write,
                          fs::perms::others_exec}) {
    fs::permissions(path, fs::perms::owner_read | mode);
    check_refused("chmod 600", [&] { (void)read_key_file(path.string()); });
  }
  fs::permissions(path, fs::perms::owner_read);
  CHECK_NOTHROW((void)read_key_file(path.string()));
}

TEST_CASE("a key file is read as editors leave it, and a public key alone is called so") {
  const Scratch directory;
  const auto path = directory.path() / "site.key";
  const KeyPair keys = make_key_pair();
  const std::string shown = keys.public_key.text();
  const std::string secret = internal::z85(keys.private_key.bytes());
  for (const std::string& text :
       {fmt::format("# a site\r\npublic {}\r\nsecret {}\r\n", shown, secret),
        fmt::format("\xEF\xBB\xBFpublic {}\nsecret {}", shown, secret),
        fmt::format("public {}\rsecret {}\r", shown, secret),
        fmt::format("  public   {}  \n\t secret\t{}\t\n\n \n", shown, secret)}) {
    write(path, text);
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
    CHECK(read_key_file(path.string()).public_key == keys.public_key);
  }
  check_key_text(path, "a public key alone", fmt::format("public {}\r\n", shown));
}

TEST_CASE("damaged key files are refused by line, and what they hold is not repeated") {
  const Scratch directory;
  const auto path = directory.path() / "site.key";
  const KeyPair keys = make_key_pair();
  const std::string secret = internal::z85(keys.private_key.bytes());
  const std::string good =
      fmt::format("# who\npublic {}\nsecret {}\n", keys.public_key.text(), secret);
  check_key_text(path, "no key pair", "");
  check_key_text(path, "no key pair", good.substr(0, good.find("secret")));
  check_key_text(path, ":3: secret", good.substr(0, good.size() - 2));
  check_key_text(path, ":4:", good + "secret " + secret + "\n");
  check_key_text(path, ":1:", "hello\n" + good);
  check_key_text(path, ":2: public", "\npublic ~" + good.substr(14));
  check_key_text(path, "no pair",
                 fmt::format("public {}\nsecret {}\n", make_key_pair().public_key.text(), secret));
  check_key_text(path, "shorter", std::string(5000, '#'));
  check_refused("plain file", [&] { (void)read_key_file(directory.path().string()); });
  check_refused("keygen", [&] { (void)read_key_file((directory.path() / "absent").string()); });
  try {
    write(path, "secret " + secret + "x\n");
    (void)read_key_file(path.string());
    FAIL_CHECK("not refused");
  } catch (const Error& error) {
    CHECK(std::string_view(error.what()).find(secret) == std::string_view::npos);
  }
}

TEST_CASE("a list of peers is read as it is written") {
  const Scratch directory;
  const auto path = directory.path() / "peers.csv";
  write(path, fmt::format("# who is who\nrank,name,key,address,may_send,send_to\r\n"
                          "0, hospital ,{},[::1]:9001,yes,no\n\n2,bank,{},,no,yes\n",
                          keys_of(0).public_key.text(), keys_of(2).public_key.text()));
  const auto peers = read_peers_file(path.string());
  REQUIRE(peers.size() == 2);
  CHECK(peers[0].name == "hospital");
  CHECK(peers[0].key == keys_of(0).public_key);
  CHECK(peers[0].address == "[::1]:9001");
  CHECK(peers[0].may_send);
  CHECK_FALSE(peers[0].send_to);
  CHECK(peers[1].rank == 2);
  CHECK(peers[1].address.empty());
  CHECK_FALSE(peers[1].may_send);
  write(path, fmt::format("\xEF\xBB\xBFkey,rank\r{},1\r", keys_of(1).public_key.text()));
  const auto brief = read_peers_file(path.string());
  REQUIRE(brief.size() == 1);
  CHECK(brief[0].may_send);
  CHECK(brief[0].send_to);
}

TEST_CASE("a list of peers that is wrong is refused by line") {
  const Scratch directory;
  const auto path = directory.path() / "peers.csv";
  const auto check_text = [&](std::string_view part, const std::string& text) {
    write(path, text);
    check_refused(part, [&] { (void)read_peers_file(path.string()); });
  };
  const auto key = keys_of(1).public_key.text();
  const std::string head = "rank,name,key,address,may_send,send_to\n";
  check_text("lists nobody", "");
  check_text("lists nobody", head);
  // A site's list is described as sites have it.
  write(path, "");
  check_refused("'name,key,address,may_send,send_to,until', and each further one a site",
                [&] { (void)read_peers_file(path.string(), PeerNumbers::of_names); });
  check_text(":1: the column 'key'", "rank,name\n");
  check_text(":1: 'colour'", "rank,key,colour\n");
  check_text(":1: 'rank'", "rank,rank,key\n");
  check_text(":2: 5 cells", head + "0,a," + key + ",,yes\n");
  check_text(":2: rank: '-1'", head + "-1,a," + key + ",,yes,yes\n");
  check_text(":2: rank: '99999999999'", head + "99999999999,a," + key + ",,yes,yes\n");
  check_text(":2: key", head + "0,a," + key.substr(1) + ",,yes,yes\n");
  check_text(":2: address", head + "0,a," + key + ",host:0,yes,yes\n");
  check_text(":2: send_to: 'maybe'", head + "0,a," + key + ",,yes,maybe\n");
  check_text(":3: this rank", head + "0,a," + key + ",,yes,yes\n0,b," +
                                  keys_of(2).public_key.text() + ",,yes,yes\n");
  check_text(":3: this key", head + "0,a," + key + ",,yes,yes\n1,b," + key + ",,yes,yes\n");
  check_text("more than", std::string((1U << 20) + 1, '#'));
  check_refused("no such file", [&] { (void)read_peers_file(directory.path().string()); });
}

TEST_CASE("an update of the list is whole or refused") {
  AllowList list(lines_of(3));
  CHECK(list.admitted(keys_of(2).public_key.text()).has_value());
  CHECK_FALSE(list.admitted(keys_of(3).public_key.text()));
  CHECK_FALSE(list.admitted(""));
  auto twice = lines_of(3);
  twice[2].key = twice[1].key;
  CHECK_THROWS_AS(list.update_allow_list(twice), Error);
  twice = lines_of(2);
  twice[1].rank = 0;
  CHECK_THROWS_AS(list.update_allow_list(twice), Error);
  CHECK(list.version() == 0);
  CHECK(list.peers().size() == 3);
  auto fewer = lines_of(3);
  fewer[2].may_send = false;
  fewer[2].send_to = false;
  list.update_allow_list(fewer);
  CHECK(list.version() == 1);
  CHECK_FALSE(list.admitted(keys_of(2).public_key.text()));
}

TEST_CASE("a list that changes on disk is in force, and one that is wrong changes nothing") {
  const Scratch directory;
  const auto path = directory.path() / "peers.csv";
  const auto put = [&](std::string_view text) {
    write(directory.path() / "new", text);
    fs::rename(directory.path() / "new", path);
  };
  const auto line = [](Rank rank) {
    return fmt::format("{},{}\n", rank, keys_of(rank).public_key.text());
  };
  put("rank,key\n" + line(0) + line(1));
  const auto list = std::make_shared<AllowList>(read_peers_file(path.string()));
  const auto heard = make_memory_store();
  int reports = 0;
  const PeersWatch watch(path.string(), list, [&](const PeersNews& news) {
    REQUIRE(heard->set(fmt::format("{}", reports++), std::as_bytes(std::span(news.text))).ok());
  });
  const auto report = [&](int number) {
    const auto text = heard->get(fmt::format("{}", number), generous());
    REQUIRE(text.ok());
    return std::string(reinterpret_cast<const char*>(text->data()), text->size());
  };
  while (list->version() == 0) {
    std::this_thread::yield();  // the first look
  }
  put("rank,key\n" + line(0));
  CHECK(report(0).find("1 lines are in force") != std::string::npos);
  CHECK(list->peers().size() == 1);
  put("rank,key\nnonsense\n");
  CHECK(report(1).find("not taken") != std::string::npos);
  CHECK(list->peers().size() == 1);
}

TEST_CASE("a key whose end has come is taken out, whatever has become of the file of peers") {
  const Scratch directory;
  const auto path = directory.path() / "peers.csv";
  const auto line = [](Rank rank, const char* name, std::optional<std::int64_t> until) {
    return TrustedPeer{.rank = rank, .name = name, .key = keys_of(rank).public_key, .until = until};
  };
  const std::int64_t now = unix_seconds();
  constexpr std::int64_t kDay = 24 * 60 * 60;
  for (const bool exists : {false, true}) {
    CAPTURE(exists);
    if (exists) {
      write(path, "rank,key\n");
      fs::permissions(path, fs::perms::all);  // everybody can write it
    }
    const auto list = std::make_shared<AllowList>(
        std::vector<TrustedPeer>{line(0, "lab", {}), line(1, "bank", now - 1),
                                 line(2, "clinic", now + kDay), line(3, "shop", now + 30 * kDay)});
    const auto heard = make_memory_store();
    int reports = 0;
    const PeersWatch watch(path.string(), list, [&](const PeersNews& news) {
      const auto text = fmt::format("{}|{}|{}", static_cast<int>(news.kind), news.peer, news.text);
      REQUIRE(heard->set(fmt::format("{}", reports++), std::as_bytes(std::span(text))).ok());
    });
    const auto report = [&](int number) {
      const auto text = heard->get(fmt::format("{}", number), generous());
      REQUIRE(text.ok());
      return std::string(reinterpret_cast<const char*>(text->data()), text->size());
    };
    const std::string ended = report(0);
    CHECK_MESSAGE(ended.starts_with("0|bank|"), ended);
    CHECK_MESSAGE(ended.find("has come") != std::string::npos, ended);
    const std::string ending = report(1);
    CHECK_MESSAGE(ending.starts_with("2|clinic|"), ending);
    CHECK_MESSAGE(ending.find("ends in 1.0 days") != std::string::npos, ending);
    CHECK(report(2).starts_with("1||"));  // and the file is not taken
    CHECK(list->peers().size() == 3);
    CHECK_FALSE(list->admitted(keys_of(1).public_key.text()).has_value());
  }
}

TEST_CASE("a list that calls a site otherwise, or that the caller refuses, is not taken") {
  const Scratch folder;
  const fs::path path = folder.path() / "peers.csv";
  const std::string a = make_key_pair().public_key.text();
  const std::string b = make_key_pair().public_key.text();
  const auto put = [&](const std::string& first, const std::string& second) {
    write(folder.path() / "new", fmt::format("name,key\n{},{}\n{},{}\n", first, a, second, b));
    fs::rename(folder.path() / "new", path);
  };
  put("bank", "lab");
  const auto list =
      std::make_shared<AllowList>(read_peers_file(path.string(), PeerNumbers::of_names));
  const auto heard = make_memory_store();
  int reports = 0;
  const PeersWatch watch(
      path.string(), list,
      [&](const PeersNews& news) {
        REQUIRE(heard->set(fmt::format("{}", reports++), std::as_bytes(std::span(news.text))).ok());
      },
      PeerNumbers::of_names,
      [](const std::vector<TrustedPeer>& peers) {
        if (peers.size() != 2) {
          throw Error("two are due");
        }
      });
  const auto report = [&](int number) {
    const auto text = heard->get(fmt::format("{}", number), generous());
    REQUIRE(text.ok());
    return std::string(reinterpret_cast<const char*>(text->data()), text->size());
  };
  while (list->version() == 0) {
    std::this_thread::yield();  // the first look
  }
  put("bnk", "lab");
  const auto renamed = report(0);
  CHECK_MESSAGE(renamed.find("the key of 'bank' is called 'bnk' now") != std::string::npos,
                renamed);
  put("lab", "bank");
  CHECK(report(1).find("is called 'lab' now") != std::string::npos);
  write(folder.path() / "new", fmt::format("name,key\nbank,{}\n", a));
  fs::rename(folder.path() / "new", path);
  CHECK(report(2).find("two are due") != std::string::npos);
  CHECK(list->peers().size() == 2);
  CHECK(list->peers()[0].name != list->peers()[1].name);
}

TEST_CASE("lists of sites go by name: numbers stay when lines come and go") {
  const Scratch folder;
  const fs::path path = folder.path() / "peers.csv";
  const std::string a = make_key_pair().public_key.text();
  const std::string b = make_key_pair().public_key.text();
  const auto read = [&](const std::string& text) {
    write(path, text);
    return read_peers_file(path.string(), PeerNumbers::of_names);
  };
  const auto two = read(fmt::format("name,key\nbank,{}\nlab,{}\n", a, b));
  REQUIRE(two.size() == 2);
  CHECK(two[0].rank >= 0);
  CHECK(two[0].rank != two[1].rank);
  CHECK(read(fmt::format("name,key\nlab,{}\n", b))[0].rank == two[1].rank);
  // A column of ranks says nothing here.
  CHECK(read(fmt::format("rank,name,key\n7,lab,{}\n", a))[0].rank == two[1].rank);
  const auto refused = [&](std::string_view part, const std::string& text) {
    check_refused(part, [&] { (void)read(text); });
  };
  refused("this key stands", fmt::format("name,key\nlab,{}\nbank,{}\n", a, a));
  refused("each needs one", fmt::format("name,key\n,{}\n", a));
  refused("'name' is missing", fmt::format("key\n{}\n", a));
  check_refused("'rank' is missing", [&] {
    write(path, fmt::format("name,key\nlab,{}\n", a));
    (void)read_peers_file(path.string());
  });
}

TEST_CASE("lists of sites: two keys of a name for a while, several addresses, or none") {
  const std::string a = make_key_pair().public_key.text();
  const std::string b = make_key_pair().public_key.text();
  const std::string c = make_key_pair().public_key.text();
  const auto parse = [](const std::string& text) {
    return parse_peers_file("peers.csv", text, PeerNumbers::of_names);
  };
  auto lines =
      parse(fmt::format("name,key,address,until\nlab,{},h:1  [::1]:2,\n"
                        "bank,{},,\nlab,{},h:1 [::1]:2,2026-12-31\n",
                        a, b, c));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].address == "h:1 [::1]:2");
  CHECK(lines[1].address.empty());
  REQUIRE(lines[0].keys().size() == 2);
  CHECK(lines[0].keys()[0] == PeerKey{*PublicKey::parse(a), std::nullopt});
  constexpr std::int64_t kEnd = 1'798'761'600;  // date -d 2027-01-01T00:00Z +%s
  CHECK(lines[0].keys()[1] == PeerKey{*PublicKey::parse(c), kEnd});
  AllowList list(lines);
  CHECK(list.admitted(c)->name == "lab");
  CHECK_FALSE(list.drop_expired(kEnd - 1));
  CHECK(list.version() == 0);
  CHECK(list.drop_expired(kEnd));
  CHECK(list.version() == 1);
  CHECK_FALSE(list.admitted(c));
  CHECK(list.admitted(a)->name == "lab");
  // The end of the first key leaves the second one, and the end of all leaves no line.
  lines =
      parse(fmt::format("name,key,until\nlab,{},2026-12-31T18:00:00Z\nlab,{},2027-02-28\n"
                        "bank,{},2026-01-01\n",
                        a, c, b));
  CHECK(lines[0].until == kEnd - 6 * 3600);
  CHECK(drop_expired(lines, kEnd));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].key.text() == c);
  CHECK(lines[0].more_keys.empty());
  const auto refused = [&](std::string_view part, const std::string& text) {
    check_refused(part, [&] { (void)parse(text); });
  };
  refused("differ in key and until",
          fmt::format("name,key,may_send\nlab,{},yes\nlab,{},no\n", a, b));
  refused("this key stands", fmt::format("name,key\nlab,{}\nbank,{}\nlab,{}\n", a, b, b));
  refused("that is where lab listens",
          fmt::format("name,key,address\nlab,{},a:1 b:2\nbank,{},c:3 b:2\n", a, b));
  refused("write a day", fmt::format("name,key,until\nlab,{},2026-02-30\n", a));
  refused("write a day", fmt::format("name,key,until\nlab,{},2026-12-31T24:00:00Z\n", a));
  refused("write a day", fmt::format("name,key,until\nlab,{},31.12.2026\n", a));
  refused("too many addresses",
          fmt::format("name,key,address\nlab,{},{}\n", a, "a:1 a:2 a:3 a:4 a:5 a:6 a:7 a:8 a:9"));
  refused("HOST:PORT", fmt::format("name,key,address\nlab,{},a:1 b\n", a));
  check_refused("only keys of sites have an end", [&] {
    (void)parse_peers_file("peers.csv",
                           fmt::format("rank,name,key,until\n0,lab,{},2026-12-31\n", a));
  });
  check_refused("write one HOST:PORT", [&] {
    (void)parse_peers_file("peers.csv", fmt::format("rank,key,address\n0,{},a:1 a:2\n", a));
  });
}

TEST_CASE("a list of peers is read from the file whose permissions were checked") {
  const Scratch directory;
  const auto put = [&](const char* name, Rank of, fs::perms others) {
    const auto path = directory.path() / name;
    write(path, fmt::format("rank,key\n0,{}\n", keys_of(of).public_key.text()));
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write | others);
    return path;
  };
  // Two files take turns under one name; the one that everybody can write must never be believed.
  const auto ours = put("ours", 0, fs::perms::none);
  const auto anybodys = put("anybodys", 1, fs::perms::others_write);
  const auto path = directory.path() / "peers.csv";
  fs::create_hard_link(ours, path);
  std::atomic<bool> over{false};
  std::thread swapper([&] {
    for (bool open = true; !over; open = !open) {
      const auto next = directory.path() / "next";
      fs::create_hard_link(open ? anybodys : ours, next);
      fs::rename(next, path);
      std::error_code ignored;
      fs::remove(next, ignored);  // renaming a link to the file of that name leaves it there
    }
  });
  int refused = 0;
  int believed = 0;
  for (int time = 0; time < 20'000; ++time) {
    try {
      believed += read_peers_file(path.string()).front().key == keys_of(1).public_key ? 1 : 0;
    } catch (const Error&) {
      ++refused;
    }
  }
  over = true;
  swapper.join();
  CHECK(believed == 0);
  MESSAGE(refused, " of 20000 looks met the file that everybody can write");
}

}  // namespace sotto::test::key_file_test
