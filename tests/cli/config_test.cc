// Settings from a file, and what no file, name or number may do.
#include <algorithm>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/program.h"
#include "support/text_of_file.h"

namespace sotto::test::config_test {

namespace {

Ended with_file(std::string_view toml, const Arguments& more = {}) {
  const Scratch scratch;
  Arguments arguments = {"train", "--config", scratch.write("run.toml", toml).string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run(arguments);
}

constexpr const char* kSmall =
    "task = \"digits,train=320,test=100\"\n"
    "model = \"softmax\"\n"
    "nodes = 2\n"
    "rounds = 3\n"
    "weight_decay = 0.25\n"
    "step-rule = \"sgd\"\n"
    "nesterov = true\n"
    "momentum = 0.5\n";

}  // namespace

TEST_CASE("a file gives settings, with dashes or underscores, and the command line wins") {
  const auto config = with_file(kSmall, {"--nodes", "3", "--json", "-"}).json().at("config");
  CHECK(config.at("nodes") == 3);
  CHECK(config.at("rounds") == 3);
  CHECK(config.at("weight_decay") == 0.25);
  CHECK(config.at("nesterov") == true);
  CHECK(config.at("model") == "softmax");
}

TEST_CASE("of epochs and rounds the one on the command line counts") {
  const auto result = with_file(kSmall, {"--epochs", "2", "--json", "-"}).json();
  CHECK(result.at("rounds") == 10);  // 320 examples, 2 nodes, batches of 32
  const auto both = with_file("rounds = 3\nepochs = 1\n");
  CHECK(both.status == 2);
  CHECK(contains(both.err, "cannot stand beside"));
}

TEST_CASE("what a file has wrong is named with its line") {
  const auto refused = [](std::string_view toml) {
    const auto ended = with_file(toml);
    CHECK(ended.status == 2);
    CHECK(ended.out.empty());
    return ended.err;
  };
  CHECK(contains(refused("nodes = 2\nnoodles = 4\n"), "run.toml:2: 'noodles' is no setting"));
  CHECK(contains(refused("roudns = 4\n"), "did you mean rounds?"));
  CHECK(contains(refused("nodes = 2\nconfig = \"x\"\n"), "run.toml:2: 'config'"));
  CHECK(contains(refused("\nnodes = \"many\"\n"), "run.toml:2"));
  CHECK(contains(refused("nodes = [1, 2]\n"), "run.toml:1: 'nodes' must be"));
  CHECK(contains(refused("nodes = \n"), "run.toml:1: not TOML"));
  const auto absent = run({"train", "--config", "/nowhere.toml"});
  CHECK(absent.status == 2);
  CHECK(contains(absent.err, "'/nowhere.toml' is refused: there is no such file"));
}

namespace {

/// Whether a text is UTF-8 that steers no terminal.
bool shows_as_text(const std::string& text) {
  const bool steers = std::any_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == '\x7F';
  });
  try {
    (void)nlohmann::json(text).dump();  // refuses what is no UTF-8
  } catch (const nlohmann::json::exception&) {
    return false;
  }
  return !steers;
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) {
    all += text;
  }
  return all;
}

constexpr const char* kScenario =
    "sotto-scenario = 1\nrun = [\"allreduce\"]\nnodes = { count = 2, gradient = \"1 ms\" }\n"
    "network = { link = \"lan\" }\n"
    "task = { task = \"digits,train=64,test=32\", model = \"softmax\", rounds = 2 }\n";

}  // namespace

TEST_CASE("names of any bytes come out as text, in messages, JSON, pages and drawings") {
  const Scratch scratch;
  std::string table = "a,b,label\n";
  for (int i = 0; i < 64; ++i) {
    table += fmt::format("{},{},{}\n", i % 7, i % 5, i % 2);
  }
  for (const std::string name : {"a\xC3(.csv", "b\xED\xA0\x80.csv", "c\x1B[2J.csv", "d\x9B.csv"}) {
    const std::string task = "csv:" + scratch.write(name, table).string();
    const Arguments small = {"--task", task, "--model", "softmax", "--nodes", "2", "--rounds", "2"};
    Arguments train = {"train", "--json", "-"};
    train.insert(train.end(), small.begin(), small.end());
    const auto trained = run(train);
    CAPTURE(trained.err);
    CHECK(trained.status == 0);
    CHECK(nlohmann::json::accept(trained.out));
    CHECK(shows_as_text(trained.out));
    const std::string page = (scratch.path() / "page.html").string();
    Arguments compare = {"compare", "--run", "allreduce", "--html", page};
    compare.insert(compare.end(), small.begin(), small.end());
    const auto compared = run(compare);
    CAPTURE(compared.err);
    CHECK(compared.status == 0);
    CHECK(shows_as_text(compared.out));
    CHECK(shows_as_text(text_of_file(page)));
    const auto refused = run({"train", "--task", task + "none"});
    CHECK(refused.status == 2);
    CHECK(shows_as_text(refused.err));
  }
  const std::string page = (scratch.path() / "s.html").string();
  const auto file = scratch.write(
      "s.toml", std::string(kScenario) + "title = \"one\\u0007 <two>\\u001b[2J\\u0000three\"\n");
  const auto simulated = run({"simulate", file.string(), "--report", page});
  CAPTURE(simulated.err);
  CHECK(simulated.status == 0);
  CHECK(shows_as_text(simulated.out));
  CHECK(shows_as_text(text_of_file(page)));
}

TEST_CASE("whatever is nested deep is refused by all that read TOML") {
  const Scratch scratch;
  const std::string deep[] = {
      "[a" + repeated(".b", 60'000) + "]\n",
      "[[a" + repeated(" . b", 60'000) + "]]\n",
      "a" + repeated(".\"b.c\"", 60'000) + " = 1\n",
      "a = " + repeated("[", 60'000) + repeated("]", 60'000) + "\n",
      "a = " + repeated("{b = ", 60'000) + "1" + repeated("}", 60'000) + "\n",
      "a = " + repeated("[{b.c = ", 60'000),
  };
  for (const std::string& text : deep) {
    CAPTURE(text.substr(0, 40));
    const std::string file = scratch.write("deep.toml", text).string();
    for (const Arguments& words :
         {Arguments{"train", "--config", file}, Arguments{"compare", "--config", file},
          Arguments{"topology", "--config", file}, Arguments{"simulate", file},
          Arguments{"faults", file}, Arguments{"plan", file}, Arguments{"node", file},
          Arguments{"status", file}}) {
      CAPTURE(words.front());
      const auto ended = run(words);
      CAPTURE(ended.err);
      CHECK(ended.status == 2);
      CHECK(contains(ended.err, "deep.toml:1: more than 16 "));
    }
  }
}

TEST_CASE("what has no end or is no file is refused wherever a file is named") {
  const Scratch scratch;
  const std::string churn = scratch.write("churn.toml", std::string(kScenario)).string();
  for (const std::string& path :
       {std::string("/dev/zero"), std::string("/dev/full"), scratch.path().string()}) {
    CAPTURE(path);
    (void)scratch.write("churn.toml", "churn = \"" + path + "\"\n" + kScenario);
    for (const Arguments& words :
         {Arguments{"train", "--config", path}, Arguments{"simulate", path},
          Arguments{"simulate", churn}, Arguments{"faults", path}, Arguments{"node", path},
          Arguments{"train", "--task", "csv:" + path},
          Arguments{"train", "--task", "libsvm:" + path},
          Arguments{"train", "--task", "text:" + path},
          Arguments{"train", "--task", "quadratic:" + path},
          Arguments{"train", "--task", "digits", "--init", path},
          Arguments{"topology", "--topology", "file:" + path}}) {
      CAPTURE(words.back());
      const auto ended = run(words);
      CAPTURE(ended.err);
      CHECK(ended.status == 2);
      CHECK(contains(ended.err, path));
    }
  }
}

TEST_CASE("a file that people write may come through a pipe") {
  const auto trained = shell(std::string("printf 'nodes = 2\\nrounds = 2\\nmodel = \"softmax\"\\n"
                                         "task = \"digits,train=64,test=32\"\\n' | ") +
                             SOTTO_PROGRAM + " train --config /dev/stdin --json -");
  CAPTURE(trained.err);
  CHECK(trained.status == 0);
  CHECK(nlohmann::json::accept(trained.out));
}

TEST_CASE("numbers at the borders of their types are read or refused, never changed") {
  const auto read = [](const char* option, const char* value) {
    return run(small_train({"--rounds", "1", option, value, "--json", "-"}));
  };
  for (const char* value : {"1e-400", "5e-324", "+0.5", "-0", "00.25"}) {
    CAPTURE(value);
    CHECK(read("--weight-decay", value).status == 0);
  }
  for (const char* value :
       {"", "1e400", "-1e999", "nan", "inf", "0x10", "1,5", "1 ", "1e", "--1"}) {
    CAPTURE(value);
    const auto ended = read("--weight-decay", value);
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, "weight-decay"));
  }
  for (const char* value : {"", "-1", "+1", "4294967296", "9007199254740993",
                            "18446744073709551616", "0x10", "1.0", "1e1", " 1", "1\t"}) {
    CAPTURE(value);
    const auto ended = read("--batch", value);
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, "batch"));
  }
  for (const char* port : {"70000", "0", "-1", "", "80x", "4294967376"}) {
    CAPTURE(port);
    const auto ended = run({"train", "--task", "digits", "--rounds", "1"},
                           {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_PORT", port}});
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, "MASTER_PORT"));
  }
}

TEST_CASE("what is said twice is refused with both places") {
  CHECK(contains(with_file("nodes = 2\nlr = 0.1\nnodes = 2\n").err,
                 "run.toml:3: 'nodes' stands in line 1 already"));
  CHECK(contains(with_file("step-rule = \"sgd\"\nstep_rule = \"sgd\"\n").err, "line"));
  const auto refused = [](const Arguments& words, const char* says) {
    const auto ended = run(words);
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, says));
  };
  refused({"train", "--lr", "0.1", "--lr", "0.1"}, "it is given 2 times, as 0.1 and as 0.1");
  refused({"train", "--task", "digits", "--compressor", "quant:8,chunk=64,chunk=64"},
          "it is given twice");
  refused({"train", "--task", "digits,train=64,train=64"}, "given twice");
  refused({"topology", "--topology", "edges:0-1,1-2,0-1"}, "edge 3, 0-1, is edge 1 once more");
  const Scratch scratch;
  const auto scenario = [&](const std::string& nodes, const std::string& network,
                            const std::string& more, const char* says) {
    refused(
        {"simulate", scratch
                         .write("s.toml",
                                "sotto-scenario = 1\nrun = [\"allreduce\"]\nnodes = { count = 4, "
                                "gradient = \"1 ms\"" +
                                    nodes + " }\nnetwork = { link = \"lan\"" + network +
                                    " }\ntask = { task = \"digits\", rounds = 2 }\n" + more)
                         .string()},
        says);
  };
  scenario(", stragglers = [{ nodes = \"1-2\", slower = 2 }, { nodes = \"2\", slower = 2 }]", "",
           "", "node 2 is made slower twice; the other place is");
  scenario("",
           ", hosts = [{ nodes = \"all\", up = \"1 MB/s\" }, { nodes = \"3\", up = \"2 MB/s\" }]",
           "", "node 3 has two connections of its own; the other place is");
  scenario("", "",
           "[[events]]\nat = \"1 s\"\ncrash = \"1\"\n[[events]]\nat = \"1000 ms\"\nleave = "
           "\"0-1\"\n",
           "which of them comes first?");
  scenario("", "", "[[events]]\nat = \"1 s\"\njoin = \"1\"\nsuspend = \"1\"\n",
           "it joins at that moment");
  const auto graph = scratch.write("g.csv", "from,to\n0,1\n1,0\n0,1\n").string();
  refused({"topology", "--topology", "file:" + graph}, "line");
  const auto quadratic = scratch
                             .write("q.json",
                                    "{\"start\": [0],\n\"nodes\": [{\"h\": [1], \"c\": [0]}],\n"
                                    "\"start\": [1]}")
                             .string();
  refused({"train", "--task", "quadratic:" + quadratic}, "\"start\" stands in line 1 already");
}

}  // namespace sotto::test::config_test
