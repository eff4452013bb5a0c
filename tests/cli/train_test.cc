// Training runs: the result, the same bits over every transport, and refused requests.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/program.h"
#include "observe/observed.h"
#include "support/skip.h"
#include "support/text_of_file.h"

namespace sotto::test::train_test {

using nlohmann::json;

TEST_CASE("the JSON result has what users and scripts rely on, and stands alone") {
  const auto result =
      run(small_train({"--rounds", "7", "--eval-every", "3", "--json", "-"})).json();
  CHECK(result.at("sotto") == SOTTO_VERSION);
  CHECK(result.at("nodes") == 4);
  CHECK(result.at("rounds") == 7);
  const auto dimension = result.at("dimension").get<std::size_t>();
  CHECK(dimension == 7850);
  CHECK(result.at("config").at("algorithm") == "dcd");
  // The full specification, all parameters filled in.
  CHECK(contains(result.at("config").at("compressor").get<std::string>(), "chunk="));
  CHECK(result.at("config").at("seed") == 0);

  REQUIRE(result.at("bytes_per_edge").size() == 8);
  std::map<int, std::uint64_t> sums;
  for (const auto& edge : result.at("bytes_per_edge")) {
    CHECK(edge.at("from") != edge.at("to"));
    sums[edge.at("from").get<int>()] += edge.at("bytes").get<std::uint64_t>();
  }
  for (int node = 0; node < 4; ++node) {
    CHECK(result.at("bytes_sent_per_node").at(static_cast<std::size_t>(node)) == sums[node]);
    CHECK(result.at("frames_sent_per_node").at(static_cast<std::size_t>(node)) == 14);
  }
  const auto& history = result.at("history");
  REQUIRE(history.size() == 3);
  CHECK(history[0].at("round") == 3);
  CHECK(history[2].at("round") == 7);
  for (const auto& point : history) {
    CHECK(point.at("time_s").get<double>() >= 0);
    CHECK(point.at("loss").get<double>() > 0);
    CHECK(point.at("accuracy").get<double>() <= 1);
  }
  CHECK(history[2].at("bytes_per_node") == static_cast<double>(sums[0]));
  CHECK(result.at("final").at("loss") == history[2].at("loss"));
  CHECK(result.at("final").at("consensus_distance").get<double>() > 0);
  for (const char* part : {"wall_s", "compute_s", "algorithm_s", "wait_s"}) {
    CHECK(result.at("time").at(part).get<double>() >= 0);
  }
  CHECK(result.at("time").at("slowest_s") >= result.at("time").at("wall_s"));
  REQUIRE(result.at("parameters_sha256").size() == 4);
  CHECK(result.at("parameters_sha256")[0].get<std::string>().size() == 64);
}

TEST_CASE("local steps divide what is sent, and take an outer rule of their own") {
  const auto result = run(small_train({"--rounds", "8", "--algorithm", "allreduce",
                                       "--communication-interval", "4", "--outer-momentum", "0.9",
                                       "--outer-nesterov", "--outer-lr", "0.7", "--json", "-"}))
                          .json();
  CHECK(result.at("config").at("communication_interval") == 4);
  CHECK(result.at("config").at("outer_step_rule") == "sgd");
  CHECK(result.at("config").at("outer_lr") == 0.7);
  CHECK(result.at("frames_sent_per_node")[0] == 2 * 6);  // two exchanges of 2 (n − 1) frames
  CHECK(result.at("final").at("consensus_distance") == 0.0);
  const auto adam = run(small_train({"--rounds", "4", "--algorithm", "onebit-adam",
                                     "--communication-interval", "2", "--json", "-"}))
                        .json();
  CHECK(adam.at("config").at("step_rule") == "sgd");
  CHECK(adam.at("config").at("outer_step_rule") == "adam");
  const auto refused = run(small_train(
      {"--algorithm", "onebit-adam", "--communication-interval", "2", "--outer-step-rule", "sgd"}));
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, "--outer-step-rule: 'sgd'"));
  CHECK(contains(refused.err, "use adam"));
  CHECK(contains(run(small_train({"--communication-interval", "0"})).err,
                 "--communication-interval: '0'"));
  CHECK(contains(run(small_train({"--outer-momentum", "2"})).err, "--outer-momentum: '2'"));
}

TEST_CASE("a disk that is too full for the models takes neither the result nor a checkpoint away") {
  const Scratch scratch;
  const auto at = [&](const char* name) { return (scratch.path() / name).string(); };
  // 4 rows of 50,890 numbers do not fit into 2 MB, as blocks of 512 or 1024 bytes count.
  for (const std::string transport : {"inproc", "gloo"}) {
    if (!has_transport(transport)) {
      continue;
    }
    CAPTURE(transport);
    const auto ended = shell(fmt::format(
        "trap '' XFSZ; ulimit -f 2000; exec {} train --nodes 4 --algorithm dpsgd --rounds 2 --task "
        "digits,train=200,test=50 --model mlp:64 --transport {} --json {} --checkpoint {} "
        "--dump-parameters {}",
        SOTTO_PROGRAM, transport, at("result.json"), at(transport.c_str()), at("models.csv")));
    CAPTURE(ended.err);
    CHECK(ended.status == 1);
    CHECK(contains(ended.err, "--dump-parameters"));
    CHECK(contains(ended.err, "models.csv"));
    CHECK(contains(ended.out, "2 rounds"));
    const auto result = json::parse(std::ifstream(at("result.json")));
    CHECK(result.at("rounds") == 2);
    CHECK(contains(result.at("dump_parameters_fault").get<std::string>(), "models.csv"));
    CHECK_FALSE(std::filesystem::exists(at("models.csv")));
    CHECK(std::filesystem::exists(scratch.path() / transport / "node-0.round-2.checkpoint"));
  }
}

TEST_CASE("a table goes to standard output unless it is wanted quiet") {
  const Scratch scratch;
  const auto file = (scratch.path() / "result.json").string();
  const auto shown = run(small_train({"--rounds", "2", "--json", file}));
  CHECK(shown.status == 0);
  CHECK(contains(shown.out, "accuracy"));
  CHECK(shown.err.empty());
  CHECK(json::parse(std::ifstream(file)).at("rounds") == 2);
  CHECK(run(small_train({"--rounds", "2", "--quiet"})).out.empty());
}

TEST_CASE("a run gives the same models over every transport, whether or not it overlaps") {
  const auto result = [](const std::string& algorithm, const std::string& transport,
                         const char* overlap) {
    const std::string_view name = algorithm;
    const bool delayed = name.starts_with("delayed ");
    return run(small_train({"--rounds", "6", "--algorithm",
                            std::string(delayed ? name.substr(8) : name), "--transport", transport,
                            delayed ? "--delayed-gradient=true" : "--delayed-gradient=false",
                            "--overlap", overlap, "--json", "-"}))
        .json();
  };
  for (const std::string algorithm : {"allreduce", "dpsgd", "dcd", "deepsqueeze", "choco",
                                      "delayed deepsqueeze", "delayed choco", "delayed pushsum"}) {
    CAPTURE(algorithm);
    const auto inproc = result(algorithm, "inproc", "on");
    for (const std::string transport : {"inproc", "gloo", "zmq"}) {
      CAPTURE(transport);
      if (!has_transport(transport)) {
        continue;
      }
      const auto other = result(algorithm, transport, "off");
      CHECK(other.at("parameters_sha256") == inproc.at("parameters_sha256"));
      CHECK(other.at("bytes_per_edge") == inproc.at("bytes_per_edge"));
      CHECK(other.at("final") == inproc.at("final"));
    }
  }
}

TEST_CASE("the same seed gives the same run, another seed another") {
  const auto digest = [](const char* seed) {
    return run(small_train({"--rounds", "3", "--seed", seed, "--json", "-"}))
        .json()
        .at("parameters_sha256");
  };
  CHECK(digest("5") == digest("5"));
  CHECK(digest("5") != digest("6"));
}

TEST_CASE("threads that encode and decode change nothing, and a wrong number is refused") {
  const auto digest = [](const std::string& threads) {
    const json result = run({"train", "--nodes", "2", "--rounds", "3", "--model", "mlp:1200,200",
                             "--compressor", "quant:4", "--codec-threads", threads, "--json", "-"})
                            .json();
    CHECK(result.at("config").at("codec_threads") == std::stoi(threads));
    return result.at("parameters_sha256");
  };
  CHECK(digest("3") == digest("1"));
  for (const char* wrong : {"0", "257"}) {
    const auto refused = run({"train", "--nodes", "2", "--rounds", "1", "--codec-threads", wrong});
    CHECK(refused.status == 2);
    CHECK(refused.err.find("--codec-threads") != std::string::npos);
  }
}

TEST_CASE("slow gradients take their time, and change nothing else") {
  const json plain = run({"train", "--nodes", "2", "--rounds", "5", "--json", "-"}).json();
  const json slow = run({"train", "--nodes", "2", "--rounds", "5", "--gradient-time",
                         "uniform:10 ms,12 ms", "--json", "-"})
                        .json();
  CHECK(slow.at("parameters_sha256") == plain.at("parameters_sha256"));
  CHECK(slow.at("config").at("gradient_time") == "uniform:10 ms,12 ms");
  CHECK(slow.at("time").at("compute_s") >= 0.05);  // a bound from below, on any machine
}

TEST_CASE("a resumed run ends as an uninterrupted one, over threads and over processes") {
  const auto whole =
      run(small_train({"--rounds", "12", "--momentum", "0.9", "--json", "-"})).json();
  for (const std::string transport : {"inproc", "zmq"}) {
    if (!has_transport(transport)) {
      continue;
    }
    CAPTURE(transport);
    const Scratch scratch;
    const auto part = [&](const Arguments& more) {
      Arguments all = {"--momentum",   "0.9", "--checkpoint", scratch.path().string(),
                       "--json",       "-",   "--transport",  transport,
                       "--eval-every", "3"};
      all.insert(all.end(), more.begin(), more.end());
      return run(small_train(all));
    };
    CHECK(part({"--rounds", "7"}).json().at("rounds") == 7);
    const auto resumed = part({"--rounds", "12", "--resume"}).json();
    CHECK(resumed.at("parameters_sha256") == whole.at("parameters_sha256"));
    CHECK(resumed.at("bytes_per_edge") == whole.at("bytes_per_edge"));
    CHECK(resumed.at("final") == whole.at("final"));
    const auto other = part({"--rounds", "14", "--resume", "--lr", "0.2"});
    CHECK(other.status == 2);
    CHECK(contains(other.err, "lr is 0.2 here and 0.1 there"));
  }
}

TEST_CASE(
    "nodes with unequal data count by their examples, and end as is wished, on every transport") {
  const auto result_of = [](const Arguments& more) {
    Arguments words = {"--algorithm", "allreduce", "--partition", "sizes:0.4",
                       "--epochs",    "3",         "--json",      "-"};
    words.insert(words.end(), more.begin(), more.end());
    return run(small_train(words)).json();
  };
  const auto alike = result_of({});
  const auto weighted = result_of({"--weight", "examples"});
  CHECK(weighted.at("parameters_sha256") != alike.at("parameters_sha256"));
  CHECK(weighted.at("config").at("weight") == "examples");
  const auto longest = result_of({"--join", "zeros"});
  const auto shortest = result_of({"--join", "stop"});
  CHECK(longest.at("config").at("rounds") > alike.at("config").at("rounds"));
  CHECK(shortest.at("config").at("rounds") < alike.at("config").at("rounds"));
  for (const std::string transport : {"gloo", "zmq"}) {
    if (has_transport(transport)) {
      CHECK(result_of({"--weight", "examples", "--transport", transport}).at("parameters_sha256") ==
            weighted.at("parameters_sha256"));
      CHECK(result_of({"--join", "zeros", "--transport", transport}).at("parameters_sha256") ==
            longest.at("parameters_sha256"));
    }
  }
  // Equal shares are all used up in the same round.
  const auto even = run(small_train({"--epochs", "2", "--join", "stop", "--json", "-"})).json();
  CHECK(even.at("config").at("rounds") == 20 / 2 * 2 / 4 + 1);
}

TEST_CASE("weights and joins that say nothing are refused") {
  const auto refused = [](const Arguments& words, const std::string& why) {
    const auto ended = run(small_train(words));
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, why));
  };
  refused({"--weight", "12"}, "count alike");
  refused({"--algorithm", "choco", "--weight", "examples"}, "average over all nodes");
  refused({"--algorithm", "dpsgd", "--weight", "examples", "--communication-interval", "4"},
          "average over all nodes");
  refused({"--rounds", "9", "--join", "zeros"}, "--epochs");
  refused({"--join", "never"}, "stop");
}

TEST_CASE("final models are dumped, and a run can start from them") {
  const Scratch scratch;
  const auto file = (scratch.path() / "models.csv").string();
  CHECK(run(small_train({"--rounds", "4", "--quiet", "--dump-parameters", file})).status == 0);
  std::ifstream rows(file);
  int count = 0;
  for (std::string row; std::getline(rows, row); ++count) {
    CHECK(std::count(row.begin(), row.end(), ',') == 7849);
  }
  CHECK(count == 4);
  const auto fresh = run(small_train({"--rounds", "1", "--json", "-"})).json();
  const auto warm = run(small_train({"--rounds", "1", "--init", file, "--json", "-"})).json();
  CHECK(warm.at("final").at("loss").get<double>() < fresh.at("final").at("loss").get<double>());
}

TEST_CASE("wrong requests are refused with status 2, what is wrong, and what would do") {
  struct Case {
    Arguments words;
    std::string says;
  };
  const Case cases[] = {
      {{"--nodes", "0"}, "at least one is needed"},
      {{"--gradient-time", "gamma:20 ms"}, "--gradient-time: 'gamma:20 ms' is none of DURATION"},
      {{"--nodes", "many"}, "--nodes"},
      {{"--lr"}, "--lr"},
      {{"--lr", "-1"}, "sotto: --lr: '-1' is refused"},
      {{"--consensus-stepsize", "0.5"}, "sotto: --consensus-stepsize: "},
      {{"--algorithm", "apmsqueeze"},
       "sotto: --freeze-step: 'none given' is refused: apmsqueeze needs freeze"},
      {{"--algorithm", "onebit-adam-gossip"}, "as in onebit-adam-gossip:freeze=100"},
      {{"--init", "/nowhere.csv"}, "sotto: --init: /nowhere.csv: there is no such file"},
      {{"--compressor", "zip"}, "zip"},
      {{"--compressor", "quant:99"}, "99"},
      {{"--algorithm", "sgdx"}, "deepsqueeze"},
      {{"--algorithm", "dcd", "--compressor", "topk:0.1"}, "unbiased"},
      {{"--algorithm", "deepsqueeze", "--compressor", "sign,scale=l2"}, "contraction"},
      {{"--topology", "hypercube", "--nodes", "6"}, "hypercube"},
      {{"--topology", "exponential", "--algorithm", "choco"}, "symmetric"},
      {{"--topology", "ring", "--weighting", "heavy"}, "heavy"},
      {{"--transport", "nccl"}, "nccl"},
      {{"--transport", "carrier-pigeon"}, "inproc"},
      {{"--task", "mnist:/nowhere"}, "/nowhere"},
      {{"--task", "words"}, "words"},
      {{"--task", "quadratic:/nowhere.json"}, "/nowhere.json"},
      {{"--model", "mlp:0"}, "mlp:0"},
      {{"--batch", "0"}, "batch"},
      {{"--partition", "dirichlet:0"}, "dirichlet:0"},
      {{"--rounds", "0"}, "--rounds"},
      {{"--epochs", "-1"}, "--epochs"},
      {{"--epochs", "1", "--rounds", "1"}, "--rounds"},
      {{"--schedule", "steep"}, "steep"},
      {{"--overlap", "maybe"}, "maybe"},
      {{"--timeout", "0"}, "--timeout"},
      {{"--json", "/nowhere/x.json"}, "/nowhere/x.json"},
      {{"--dump-parameters", "/nowhere/x.csv"}, "/nowhere/x.csv"},
      {{"--checkpoint", "/proc/none"}, "/proc/none"},
      {{"--resume"}, "--checkpoint"},
      {{"--resume", "--checkpoint", "/nowhere"}, "there is no such folder"},
      {{"--checkpoint-every", "3"}, "nothing is saved without --checkpoint"},
      {{"--beta1", "0.8"}, "--step-rule adam"},
      {{"--step-rule", "adma", "--beta1", "0.8"}, "did you mean adam?"},
      {{"--step-rule", "adam", "--nesterov"}, "--nesterov: the step rule is adam"},
      {{"--algorithm", "chocoo"}, "did you mean choco?"},
      {{"--compressor", "qaunt:8"}, "did you mean quant?"},
      {{"--topology", "rign"}, "did you mean ring?"},
      {{"--task", "digts"}, "did you mean digits?"},
      {{"--task", "digits,trian=5"}, "did you mean train?"},
      {{"--task", "libsvm:/nowhere,featuers=5"}, "did you mean features?"},
      {{"--task", "libsvm:/nowhere,colour=5"}, "no parameter of libsvm; it has features"},
      {{"--rendezvous", "file:/tmp"}, "WORLD_SIZE"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.says);
    Arguments words = {"train", "--quiet"};
    if (one.words[0] != "--task") {
      words.insert(words.end(), {"--task", "digits,train=320,test=100"});
    }
    words.insert(words.end(), one.words.begin(), one.words.end());
    const auto ended = run(words);
    CHECK(ended.status == 2);
    CHECK(ended.out.empty());
    CAPTURE(ended.err);
    CHECK(contains(ended.err, one.says));
  }
}

TEST_CASE("a run that fails leaves no files behind, and those that were there alone") {
  const Scratch scratch;
  const auto before = scratch.write("result.json", "before").string();
  const auto models = (scratch.path() / "models.csv").string();
  for (const Arguments& wrong :
       {Arguments{"--lr", "10", "--weight-decay", "1"}, Arguments{"--compressor", "zip"}}) {
    Arguments words = {"--rounds", "500", "--json", before, "--dump-parameters", models};
    words.insert(words.end(), wrong.begin(), wrong.end());
    CHECK(run(small_train(words)).status != 0);
    CHECK(text_of_file(before) == "before");
    CHECK_FALSE(std::filesystem::exists(models));
  }
  CHECK(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 1);
}

TEST_CASE("a result goes through a link, and into a pipe as it is") {
  const Scratch scratch;
  const auto file = scratch.write("result.json", "").string();
  const auto link = (scratch.path() / "link").string();
  std::filesystem::create_symlink(file, link);
  CHECK(run({"list", "--json", link}).status == 0);
  CHECK(json::parse(std::ifstream(file)).at("sotto") == SOTTO_VERSION);
  CHECK(std::filesystem::is_symlink(link));
  CHECK(run({"list", "--quiet", "--json", "/dev/stdout"}).json().at("sotto") == SOTTO_VERSION);
  CHECK(run({"list", "--json", scratch.path().string()}).status == 2);
  CHECK(run({"list", "--quiet", "--json", "/dev/full"}).status == 1);
}

TEST_CASE("a saved run is taken up by another number of nodes, and its models are taken out") {
  const Scratch scratch;
  const std::string folder = (scratch.path() / "saved").string();
  const std::string file = (scratch.path() / "mean.safetensors").string();
  CHECK(run(small_train({"--rounds", "6", "--checkpoint", folder})).status == 0);
  const auto refused = run({"train", "--task", "digits,train=320,test=100", "--model", "softmax",
                            "--nodes", "2", "--rounds", "9", "--checkpoint", folder, "--resume"});
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, "--init " + folder));
  const auto exported = run({"checkpoint", "export", folder, "--mean", file, "--json", "-"});
  CAPTURE(exported.err);
  CHECK(exported.json().at("mean").at("round") == 6);
  const auto from = [&](const std::string& start) {
    const auto ended = run({"train", "--task", "digits,train=320,test=100", "--model", "softmax",
                            "--nodes", "2", "--rounds", "3", "--init", start, "--json", "-"});
    CAPTURE(ended.err);
    CHECK(contains(ended.err, "the mean of 4 models after round 6") == (start == folder));
    return ended.json().at("parameters_sha256");
  };
  CHECK(from(folder) == from(file));
  const auto inspected = run({"checkpoint", "inspect", folder});
  CHECK(inspected.status == 0);
  CHECK(contains(inspected.out, "node-3.round-6.checkpoint"));
}

TEST_CASE("a start may be written with signs and tiny numbers") {
  const Scratch scratch;
  const auto problem = scratch.write(
      "p.json", R"({"start": [0, 0, 0], "nodes": [{"h": [1, 1, 1], "c": [0, 0, 0]}]})");
  const auto start = [&](const char* row) {
    return run({"train", "--task", "quadratic:" + problem.string(), "--rounds", "1", "--lr", "0",
                "--json", "-", "--init", scratch.write("x.csv", row).string()});
  };
  CHECK(start("+1,1e-50,-1e-400\n").json().at("final").at("loss") == 0.5);
  for (const char* row : {"+-1,0,0\n", "1e39,0,0\n", "1e999,0,0\n", "nan,0,0\n", "0x1,0,0\n"}) {
    const auto ended = start(row);
    CAPTURE(row);
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, "x.csv:1: column 1"));
  }
}

TEST_CASE("what does nothing in a run is said, unless it is to be quiet") {
  const Scratch scratch;
  const auto problem =
      scratch.write("p.json", R"({"start": [0], "nodes": [{"h": [1], "c": [0]}]})");
  Arguments words = {"train",    "--task", "quadratic:" + problem.string(),
                     "--rounds", "1",      "--batch",
                     "4",        "--bind", "127.0.0.2"};
  const auto ended = run(words);
  CHECK(ended.status == 0);
  CHECK(contains(ended.err, "warning: --batch does nothing here"));
  CHECK(contains(ended.err, "warning: --bind does nothing here"));
  words.push_back("--quiet");
  CHECK(run(words).err.empty());
}

TEST_CASE("a run too short for its settings is warned of") {
  struct Case {
    Arguments words;
    std::string says;
  };
  const Arguments freezing = {"--rounds", "6", "--algorithm", "onebit-adam", "--beta2"};
  const auto with = [&](const Arguments& more) {
    Arguments all = freezing;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Case cases[] = {
      {{"--rounds", "3", "--communication-interval", "4"}, "the nodes never talk"},
      {{"--rounds", "4", "--communication-interval", "4"}, ""},
      {with({"0.6667"}), "full precision throughout; say when, e.g. onebit-adam:freeze=1"},
      {with({"0.5"}), ""},
      {with({"0.6667", "--freeze-step", "2"}), ""},
      {with({"0.5", "--freeze-step", "6"}), "before the variance is frozen"},
      {{"--rounds", "1", "--outer-lr", "0.5"}, "--outer-lr only multiplies --lr here"},
      {{"--rounds", "1", "--outer-step-rule", "sgd"}, "--outer-step-rule sgd does nothing here"},
      {{"--rounds", "1", "--outer-lr", "0.5", "--outer-momentum", "0.5"}, ""},
      {{"--rounds", "2", "--outer-lr", "0.5", "--communication-interval", "2"}, ""},
  };
  for (const Case& one : cases) {
    const auto ended = run(small_train(one.words));
    CAPTURE(one.words.back());
    CAPTURE(ended.err);
    CHECK(ended.status == 0);
    CHECK(one.says.empty() == ended.err.empty());
    CHECK(contains(ended.err, one.says));
  }
}

TEST_CASE("a run that ends worse than it began is said to have diverged") {
  const Scratch scratch;
  const auto problem =
      scratch.write("p.json", R"({"start": [1], "nodes": [{"h": [1], "c": [0]}]})").string();
  const auto end = [&](const char* rate) {
    return run({"train", "--task", "quadratic:" + problem, "--rounds", "4", "--eval-every", "1",
                "--algorithm", "allreduce", "--lr", rate});
  };
  const auto bad = end("2.5");
  CHECK(bad.status == 0);
  CHECK(contains(bad.out, "the run diverged or overfitted; lower --lr"));
  CHECK_FALSE(contains(end("0.5").out, "diverged"));
}

TEST_CASE("one of a thing is not called several") {
  const auto ended = run({"train", "--task", "digits,train=320,test=100", "--model", "softmax",
                          "--rounds", "1", "--nodes", "1"});
  CHECK(contains(ended.out, "1 node, 1 round, 7850 parameters"));
}

TEST_CASE("a contract may be violated when the user says so") {
  const auto ended = run(small_train({"--rounds", "3", "--algorithm", "dcd", "--compressor",
                                      "topk:0.5", "--allow-contract-violation", "--json", "-"}));
  CHECK(ended.status == 0);
}

TEST_CASE("a run that diverges fails by name and does not hang") {
  for (const std::string transport : {"inproc", "gloo", "zmq"}) {
    if (!has_transport(transport)) {
      continue;
    }
    CAPTURE(transport);
    const auto ended = run(small_train({"--rounds", "500", "--lr", "10", "--weight-decay", "1",
                                        "--quiet", "--transport", transport}));
    CHECK(ended.status == 1);
    CAPTURE(ended.err);
    CHECK(contains(ended.err, "the run failed: node "));
    CHECK(contains(ended.err, "finite"));
  }
}

TEST_CASE("parameters without a variance at Adam's freeze are named when it comes") {
  const Scratch scratch;
  const std::string problem = "quadratic:" + scratch
                                                 .write("p.json", R"({"start": [0, 1, 1], "nodes": [
                             {"h": [1, 1, 1], "c": [1, 1, 1]}, {"h": [2, 2, 2], "c": [2, 1, 1]}]})")
                                                 .string();
  const std::string told = "2 of 3 parameters had no gradient before Adam's variance was frozen";
  const Arguments words = {"--task", problem, "--rounds", "12", "--nodes", "2"};
  for (const std::string algorithm : {"apmsqueeze", "onebit-lamb", "onebit-adam-gossip"}) {
    CAPTURE(algorithm);
    Arguments train = {"train", "--algorithm", algorithm, "--freeze-step", "3"};
    train.insert(train.end(), words.begin(), words.end());
    const auto ended = run(train);
    CAPTURE(ended.err);
    CHECK(ended.status == 0);
    const auto at = ended.err.find("sotto: warning: " + told);
    REQUIRE(at != std::string::npos);
    CHECK(ended.err.find(told, at + told.size()) == std::string::npos);
  }
  Arguments compare = {"compare", "--run", "onebit-adam freeze-step=3"};
  compare.insert(compare.end(), words.begin(), words.end());
  CHECK(contains(run(compare).err, told));
}

}  // namespace sotto::test::train_test
