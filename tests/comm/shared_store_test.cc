// Stores in which nodes that come and go meet: looks that do not wait and read no more than they
// may, and claims of which one is the first.
#include <sotto/comm/shared_store.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sotto/base/error.h>

#include "../../comm/store/stale.h"
#include "nodes.h"
#include "store_contract.h"
#include "support/free_port.h"
#include "support/redis_server.h"
#include "support/scratch.h"
#include "support/skip.h"
#include "torch_server.h"

namespace sotto::test::shared_store_test {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMost = 64;

using Found = std::optional<std::vector<std::byte>>;

void check_looks(SharedStore& first, SharedStore& second) {
  CHECK(second.look("a/b", kMost, generous()).value() == Found());
  CHECK(first.set("a/b", std::vector(kMost, std::byte{7})).ok());
  CHECK(second.look("a/b", kMost, generous()).value() == Found(std::vector(kMost, std::byte{7})));
  CHECK(second.look("a/b", kMost - 1, generous()).status().fault() == Fault::malformed);
  CHECK(first.remove("a/b").ok());
  CHECK(second.look("a/b", kMost, generous()).value() == Found());
  CHECK(first.look("a b", kMost, generous()).status().fault() == Fault::malformed);
}

void check_claims(SharedStore& first, SharedStore& second) {
  CHECK(first.claim("one", bytes_of("first"), kMost, generous()).value() == bytes_of("first"));
  CHECK(second.claim("one", bytes_of("second"), kMost, generous()).value() == bytes_of("first"));
  CHECK(first.claim("one", bytes_of("third"), kMost, generous()).value() == bytes_of("first"));
  CHECK(second.get("one", generous()).value() == bytes_of("first"));
  CHECK(second.remove("one").ok());
  CHECK(second.claim("one", bytes_of("second"), kMost, generous()).value() == bytes_of("second"));
  CHECK(first.claim("two", {}, kMost, generous()).status().fault() == Fault::malformed);
  CHECK(first.claim("two", std::vector(kMost + 1, std::byte{1}), kMost, generous())
            .status()
            .fault() == Fault::malformed);
  CHECK(first.set("three", std::vector(kMost + 1, std::byte{1})).ok());
  CHECK(second.claim("three", bytes_of("x"), kMost, generous()).status().fault() ==
        Fault::malformed);
  CHECK(first.set("four", {}).ok());  // an empty value is nobody's claim
  CHECK(second.claim("four", bytes_of("x"), kMost, generous()).status().fault() ==
        Fault::malformed);
  CHECK(first.put("five", bytes_of("x"), generous()).ok());
  CHECK(second.put("five", bytes_of("y"), generous()).ok());
  CHECK(first.look("five", kMost, generous()).value() == Found(bytes_of("y")));
  CHECK(first.drop("five", generous()).ok());
  CHECK(second.drop("five", generous()).ok());
  CHECK(second.look("five", kMost, generous()).value() == Found());
}

void check_rivals(const std::string& url) {
  constexpr Rank kRivals = 8;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<std::byte>> seen(kRivals);
    std::latch all(kRivals);
    spawn(kRivals, [&](Rank rank) {
      const auto store = make_shared_store("seeds", url);
      const auto mine = bytes_of("rival " + std::to_string(rank));
      all.arrive_and_wait();
      seen[static_cast<std::size_t>(rank)] =
          store->claim("rivals/" + std::to_string(round), mine, kMost, generous()).value();
    });
    CHECK(std::ranges::adjacent_find(seen, std::not_equal_to()) == seen.end());
  }
}

}  // namespace

TEST_CASE("shared stores in files: looks and claims") {
  const Scratch folder;
  const std::string url = "file:" + (folder.path() / "deep" / "made").string();
  const auto first = make_shared_store("seeds", url);
  const auto second = make_shared_store("seeds", url);
  check_everything(*first, *second);
  check_looks(*first, *second);
  check_claims(*first, *second);
  check_rivals(url);
  for (const auto& entry : fs::directory_iterator(folder.path() / "deep" / "made")) {
    CHECK(entry.path().filename().string().starts_with("key-"));  // nothing lies about
  }
}

TEST_CASE("shared stores in files: what is no file of a value is refused at once") {
  const Scratch folder;
  const auto store = make_shared_store("seeds", "file:" + folder.path().string());
  REQUIRE(::mkfifo((folder.path() / "key-pipe").c_str(), 0600) == 0);
  fs::create_directory(folder.path() / "key-folder");
  fs::create_symlink("/dev/zero", folder.path() / "key-link");
  std::ofstream(folder.path() / "key-huge") << "x";
  fs::resize_file(folder.path() / "key-huge", std::uintmax_t{1} << 40U);
  for (const std::string key : {"pipe", "folder", "link", "huge"}) {
    CAPTURE(key);
    CHECK(store->look(key, kMost, generous()).status().fault() == Fault::malformed);
    CHECK(store->claim(key, bytes_of("x"), kMost, generous()).status().fault() == Fault::malformed);
  }
  if (::geteuid() != 0) {
    std::ofstream(folder.path() / "key-secret") << "x";
    fs::permissions(folder.path() / "key-secret", fs::perms::none);
    CHECK(store->look("secret", kMost, generous()).status().fault() == Fault::malformed);
  }
}

TEST_CASE(
    "shared stores in files: an empty file, as a crash may leave it, is refused and no value") {
  const Scratch folder;
  const auto store = make_shared_store("seeds", "file:" + folder.path().string());
  std::ofstream(folder.path() / "key-empty").close();
  const Status status = store->look("empty", kMost, generous()).status();
  CHECK(status.fault() == Fault::malformed);
  CHECK(status.message().find("empty") != std::string::npos);
  CHECK(store->claim("empty", bytes_of("x"), kMost, generous()).status().fault() ==
        Fault::malformed);
  CHECK(store->drop("empty", generous()).ok());
  CHECK(store->claim("empty", bytes_of("x"), kMost, generous()).value() == bytes_of("x"));
}

TEST_CASE("shared stores in files: what killed processes have left is removed once it is old") {
  const Scratch folder;
  const auto make = [&](const std::string& name, bool old) {
    std::ofstream(folder.path() / name) << "half";
    if (old) {
      fs::last_write_time(folder.path() / name,
                          fs::file_time_type::clock::now() - std::chrono::hours(2));
    }
  };
  make("new-sotto-host-1-2-3", true);
  make("new-sotto-host-1-2-4", false);  // may be being written
  make("new-data.csv", true);           // none of ours
  make("key-kept", true);
  fs::create_directory(folder.path() / "new-sotto-folder");
  const auto store = make_shared_store("seeds", "file:" + folder.path().string());
  CHECK(store->claim("one", bytes_of("x"), kMost, generous()).ok());
  CHECK_FALSE(fs::exists(folder.path() / "new-sotto-host-1-2-3"));
  for (const std::string name :
       {"new-sotto-host-1-2-4", "new-data.csv", "key-kept", "new-sotto-folder"}) {
    CHECK(fs::exists(folder.path() / name));
  }
}

TEST_CASE("shared stores in files: a name of a new file that is taken is passed over, and kept") {
  const Scratch folder;
  const auto store = make_shared_store("seeds", "file:" + folder.path().string());
  char host[256] = {};
  REQUIRE(::gethostname(host, sizeof host - 1) == 0);
  // Another process, in a container of its own, may have the number and the place in memory.
  const std::string name =
      fmt::format("new-sotto-{}-{}-{}-", host, ::getpid(),
                  reinterpret_cast<std::uintptr_t>(dynamic_cast<void*>(store.get())));
  for (const int k : {1, 2, 5}) {
    std::ofstream(folder.path() / (name + std::to_string(k))) << "another's";
  }
  CHECK(store->claim("a", bytes_of("x"), kMost, generous()).value() == bytes_of("x"));
  CHECK(store->set("b", bytes_of("y")).ok());
  CHECK(store->set("c", bytes_of("z")).ok());
  for (const int k : {1, 2, 5}) {
    CHECK(fs::file_size(folder.path() / (name + std::to_string(k))) == 9);
  }
  // What cannot have its place leaves nothing about.
  fs::create_directory(folder.path() / "key-d");
  CHECK(store->set("d", bytes_of("y")).fault() == Fault::io);
  std::size_t fresh = 0;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    fresh += entry.path().filename().string().starts_with("new-") ? 1U : 0U;
  }
  CHECK(fresh == 3);
}

TEST_CASE("shared stores in files: what a server of files calls stale is tried again") {
  int calls = 0;
  CHECK(internal::again_while_stale(generous(), [&] { return ++calls < 4 ? ESTALE : ENOENT; }) ==
        ENOENT);
  CHECK(calls == 4);
  CHECK(internal::again_while_stale(generous(), [&] { return ++calls < 8 ? ESTALE : 0; }) == 0);
  CHECK(calls == 8);
  CHECK(internal::again_while_stale(Deadline::after({}), [&] { return ESTALE; }) == ESTALE);
}

TEST_CASE("shared stores in files: a folder that has gone is a store that does not answer") {
  const Scratch folder;
  const auto store = make_shared_store("seeds", "file:" + (folder.path() / "gone").string());
  fs::remove_all(folder.path() / "gone");
  CHECK(store->look("key", kMost, generous()).status().fault() == Fault::io);
  CHECK(store->claim("key", bytes_of("x"), kMost, generous()).status().fault() == Fault::io);
  fs::create_directory(folder.path() / "gone");
  CHECK(store->look("key", kMost, generous()).value() == Found());
}

TEST_CASE("shared stores in Redis: looks and claims") {
  try {
    (void)make_shared_store("seeds", "redis://127.0.0.1:1/");
  } catch (const Error&) {
    SOTTO_SKIP("built without hiredis");
  }
  if (!has_redis_server()) {
    SOTTO_SKIP("no redis-server");
  }
  const RedisServer server;
  const std::string url = fmt::format("redis://127.0.0.1:{}/job", server.port);
  const auto first = make_shared_store("seeds", url);
  const auto second = make_shared_store("seeds", url);
  check_looks(*first, *second);
  check_claims(*first, *second);
  check_rivals(url);
  CHECK(first->look("four", kMost, generous()).value() ==
        Found());  // Redis tells it from none late
  const auto other = make_shared_store("seeds", fmt::format("redis://127.0.0.1:{}", server.port));
  CHECK(other->look("one", kMost, generous()).value() == Found());
}

TEST_CASE("shared stores in a TCPStore of each generation: looks and claims") {
  for (const TorchServer kind : {TorchServer::until_2_0, TorchServer::of_2_1,
                                 TorchServer::since_2_2, TorchServer::since_2_2_libuv}) {
    CAPTURE(static_cast<int>(kind));
    FakeTorchStore server(kind);
    const std::string url = fmt::format("torch://127.0.0.1:{}/job", server.port());
    const auto first = make_shared_store("seeds", url);
    const auto second = make_shared_store("seeds", url);
    check_looks(*first, *second);
    check_claims(*first, *second);
    check_rivals(url);
    CHECK(first->look("four", kMost, generous()).value() == Found(std::vector<std::byte>()));
    const auto other = make_shared_store("seeds", url + "2");
    CHECK(other->look("one", kMost, generous()).value() == Found());
  }
}

TEST_CASE("shared stores in a TCPStore: of long values that are claimed one is there and whole") {
  constexpr std::size_t kLong = 2'500'000;
  FakeTorchStore server(TorchServer::since_2_2_libuv);
  const std::string url = fmt::format("torch://127.0.0.1:{}/job", server.port());
  const auto store = make_shared_store("seeds", url);
  const std::vector<std::byte> mine(kLong, std::byte{1});
  CHECK(store->claim("long", mine, kLong, generous()).value() == mine);
  CHECK(server.values().size() == 4);  // a head and three pieces
  const std::vector<std::byte> late(kLong, std::byte{2});
  CHECK(store->claim("long", late, kLong, generous()).value() == mine);
  CHECK(server.values().size() == 4);  // what came late has left nothing
  CHECK(store->look("long", kLong - 1, generous()).status().fault() == Fault::malformed);
  CHECK(store->look("long", kLong, generous()).value() == Found(mine));
  CHECK(store->drop("long", generous()).ok());
  CHECK(server.values().empty());
}

TEST_CASE("shared stores in a TCPStore: a line that breaks in a claim leaves one value") {
  for (int requests = 0; requests < 6; ++requests) {
    CAPTURE(requests);
    FakeTorchStore server(TorchServer::since_2_2_libuv);
    const auto store =
        make_shared_store("seeds", fmt::format("torch://127.0.0.1:{}/job", server.port()));
    REQUIRE(store->look("key", kMost, generous()).ok());
    server.close_after(requests);
    CHECK(store->claim("key", bytes_of("first"), kMost, generous()).value() == bytes_of("first"));
    CHECK(store->claim("key", bytes_of("second"), kMost, generous()).value() == bytes_of("first"));
    server.close_after(-1);
    CHECK(server.values().size() == 1);
  }
}

TEST_CASE("shared stores in a TCPStore: what others wrote under a key makes way") {
  for (const std::string& foreign : {std::string("?what is this"), std::string(1'000'000, 'x')}) {
    CAPTURE(foreign.size());
    FakeTorchStore server(TorchServer::since_2_2_libuv);
    const auto store =
        make_shared_store("seeds", fmt::format("torch://127.0.0.1:{}/job", server.port()));
    REQUIRE(store->put("key", bytes_of("own"), generous()).ok());
    const std::string place = server.values().begin()->first;
    server.put(place, foreign);
    CHECK(store->look("key", kMost, generous()).status().fault() == Fault::malformed);
    CHECK(store->put("key", bytes_of("again"), generous()).ok());
    CHECK(store->look("key", kMost, generous()).value() == Found(bytes_of("again")));
    server.put(place, foreign);
    CHECK(store->drop("key", generous()).ok());
    CHECK(server.values().empty());
  }
}

TEST_CASE("shared stores in a TCPStore: a server that says nothing is none that answers") {
  const RawServer silent([](const RawServer::Client& client) { client.wait(); });
  const auto store =
      make_shared_store("seeds", fmt::format("torch://127.0.0.1:{}/job", silent.port()));
  const Deadline soon = Deadline::after(std::chrono::milliseconds(30));
  const Status looked = store->look("key", kMost, soon).status();
  CHECK(looked.fault() == Fault::io);
  CHECK(looked.message().find("it did not answer") != std::string::npos);
  CHECK(store->put("key", bytes_of("x"), soon).fault() == Fault::io);
}

TEST_CASE("shared stores: other stores are refused and servers have addresses") {
  for (const std::string url : {"tcp://127.0.0.1:1", "torch://127.0.0.1", "torch://127.0.0.1:0/x",
                                "memory:", "file:", "redis://127.0.0.1", "redis://127.0.0.1:0/x"}) {
    CAPTURE(url);
    CHECK(names_store(url));
    CHECK_THROWS_WITH_AS(check_shared_store("seeds", url), doctest::Contains("seeds: "), Error);
    CHECK_THROWS_AS((void)make_shared_store("seeds", url), Error);
  }
  CHECK_NOTHROW(check_shared_store("seeds", "redis://[::1]:6379"));
  CHECK_NOTHROW(check_shared_store("seeds", "torch://127.0.0.1:29500/job/7 a"));
  CHECK_FALSE(names_store("127.0.0.1:9000"));
  CHECK_FALSE(names_store("redis:6379"));
  CHECK(server_of_store("redis://[::1]:6379/a/b") == "[::1]:6379");
  CHECK(server_of_store("redis://host:6379") == "host:6379");
  CHECK(server_of_store("torch://host:29500/run") == "host:29500");
  CHECK(server_of_store("file:/a:b").empty());
}

}  // namespace sotto::test::shared_store_test
