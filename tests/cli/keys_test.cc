// `sotto keygen`, and training between nodes that trust each other's keys and nothing else.
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/program.h"
#include "support/free_port.h"
#include "support/skip.h"
#include "support/text_of_file.h"

namespace sotto::test::keys_test {

namespace {

/// Key pairs of three nodes, and the list that names them all.
class Site {
 public:
  Site() {
    for (const char* name : {"a", "b", "c"}) {
      const auto made = run({"keygen", file(name), "--json", "-"}).json();
      keys.push_back(made.at("public_key"));
      ports_.push_back(free_port());
    }
    peers = folder_.write("peers.csv", list(keys)).string();
  }

  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string list(const std::vector<std::string>& of) const {
    std::string text = "rank,name,key,address\n";
    for (std::size_t rank = 0; rank < of.size(); ++rank) {
      text += fmt::format("{},,{},127.0.0.1:{}\n", rank, of[rank], ports_[rank]);
    }
    return text;
  }
  void replace_list(const std::vector<std::string>& of) const {
    std::filesystem::rename(folder_.write("new.csv", list(of)), peers);
  }
  Arguments train(const std::string& name, const Arguments& more) const {
    Arguments words = {"train",
                       "--task",
                       "digits,train=300,test=100",
                       "--key",
                       file(name) + ".key",
                       "--peers",
                       peers,
                       "--rendezvous",
                       fmt::format("tcp://127.0.0.1:{}", store_port_)};
    words.insert(words.end(), more.begin(), more.end());
    return command(words);
  }

  std::vector<std::string> keys;
  std::string peers;

 private:
  Scratch folder_;
  std::vector<int> ports_;
  int store_port_ = free_port();
};

}  // namespace

TEST_CASE("keygen makes a key that only its owner reads, and replaces none") {
  const Scratch folder;
  const auto base = (folder.path() / "site").string();
  const auto made = run({"keygen", base});
  CHECK(made.status == 0);
  CHECK(made.out.size() == 41);
  const std::string shown = text_of_file(base + ".pub");
  CHECK(shown == made.out);
  struct stat state {};
  REQUIRE(::stat((base + ".key").c_str(), &state) == 0);
  CHECK((state.st_mode & 0777U) == 0600U);
  const auto again = run({"keygen", base});
  CHECK(again.status == 2);
  CHECK(contains(again.err, "there already"));
  std::filesystem::remove(base + ".pub");
  CHECK(run({"keygen", base}).status == 2);
  const auto nowhere = run({"keygen", (folder.path() / "no" / "site").string()});
  CHECK(nowhere.status == 2);
  CHECK(contains(nowhere.err, "sotto: secret key: '"));  // it has no option --key
}

TEST_CASE("three nodes with keys and a list are one run, encrypted, with the same bits") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Site site;
  const Arguments length = {"--rounds", "5", "--json", "-"};
  std::vector<std::unique_ptr<Process>> nodes;
  for (const char* name : {"a", "b", "c"}) {
    nodes.push_back(std::make_unique<Process>(site.train(name, length)));
  }
  const auto result = nodes[0]->wait().json();
  CHECK(result.at("config").at("encrypted") == true);
  CHECK(result.at("config").at("transport") == "zmq");
  for (std::size_t rank = 1; rank < 3; ++rank) {
    const auto ended = nodes[rank]->wait();
    CAPTURE(ended.err);
    CHECK(ended.status == 0);
    CHECK(ended.out.empty());
  }
  const auto plain = run({"train", "--task", "digits,train=300,test=100", "--nodes", "3",
                          "--rounds", "5", "--json", "-"})
                         .json();
  CHECK(plain.at("config").at("encrypted") == false);
  CHECK(plain.at("parameters_sha256") == result.at("parameters_sha256"));
}

TEST_CASE("a node whose key the list has lost ends the run of those who lost it, by name") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Site site;
  const Arguments length = {"--rounds", "100000000", "--eval-every", "50"};
  Process first(site.train("a", length));
  Process second(site.train("b", length));
  Process third(site.train("c", length));
  REQUIRE(first.wait_for(" s "));  // a row of the history: they train
  site.replace_list({site.keys[0], site.keys[1]});
  // Each looks at the list in its own time, and the first one that drops a node ends them all.
  std::string said;
  for (Process* node : {&first, &second, &third}) {
    const auto ended = node->wait();
    CHECK(ended.status == 1);
    said += ended.err;
  }
  CHECK_MESSAGE(contains(said, "has changed: its 2 lines are in force"), said);
}

TEST_CASE("keys and lists that do not fit are refused before anything is begun") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Site site;
  const auto refused = [&](std::string_view part, const Arguments& more,
                           const Variables& variables = {}) {
    const auto ended = Process(site.train("a", more), variables).wait();
    CHECK(ended.status == 2);
    CHECK_MESSAGE(contains(ended.err, part), ended.err);
  };
  refused("--local", {"--local"});
  refused("it sends in plain text", {"--transport", "gloo"});
  refused("makes this node 0", {"--nodes", "0"});
  refused("that it is node 1", {}, {{"RANK", "1"}, {"WORLD_SIZE", "3"}});
  refused("names no such rank", {"--nodes", "4"});
  site.replace_list({site.keys[1], site.keys[2]});
  refused("no line has this node's key", {});
  const auto alone = run({"train", "--key", site.file("a") + ".key"});
  CHECK(alone.status == 2);
  CHECK(contains(alone.err, "--peers"));
}

}  // namespace sotto::test::keys_test
