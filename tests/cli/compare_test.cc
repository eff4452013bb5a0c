// `sotto compare`: its runs, their words, and what is left when one of them fails.
#include <cmath>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "cli/program.h"
#include "support/text_of_file.h"

namespace sotto::test::compare_test {

using nlohmann::json;

namespace {

Arguments small_compare(const Arguments& more) {
  Arguments all = {"compare", "--task", "digits,train=320,test=100", "--model", "softmax",
                   "--nodes", "4"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<std::string> names(const json& entries) {
  std::vector<std::string> found;
  for (const json& entry : entries) {
    found.push_back(entry.at("name"));
  }
  return found;
}

/// The page that a comparison writes.
std::string page_of(Arguments words) {
  const Scratch scratch;
  const auto page = (scratch.path() / "page.html").string();
  words.insert(words.end(), {"--quiet", "--html", page});
  const auto ended = run(words);
  CAPTURE(ended.err);
  CHECK(ended.status == 0);
  return text_of_file(page);
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("compare sets runs side by side, each with its own words") {
  const Scratch scratch;
  const auto page = (scratch.path() / "page.html").string();
  const auto ended =
      run(small_compare({"--rounds", "4", "--html", page, "--run", "allreduce", "--run",
                         "choco topk:0.1 complete lr=0.05", "--run", "dpsgd rounds=2", "--run",
                         "d2 epochs=1 lazy=true", "--json", "-"}));
  const auto result = ended.json();
  CHECK(result.at("failed").empty());
  const auto& runs = result.at("runs");
  CHECK(names(runs) == Names{"allreduce", "choco topk:0.1 complete lr=0.05", "dpsgd rounds=2",
                             "d2 epochs=1 lazy=true"});
  CHECK(runs[1].at("config").at("compressor") == "topk:0.1");
  CHECK(runs[1].at("config").at("topology") == "complete");
  CHECK(runs[1].at("config").at("lr") == 0.05);
  CHECK(runs[0].at("rounds") == 4);
  CHECK(runs[2].at("rounds") == 2);
  CHECK(runs[3].at("rounds") == 3);  // 320 examples, 4 nodes, batches of 32
  CHECK(std::filesystem::file_size(page) > 1000);
}

TEST_CASE("compare says what runs computed a second, and AIPerf's score of it") {
  const auto result = run(small_compare({"--rounds", "4", "--run", "allreduce", "--run",
                                         "dpsgd model=cnn", "--json", "-"}))
                          .json();
  const json& plain = result.at("runs")[0];
  // 2 × 784 × 10 operations a product, three of them, 32 examples, 4 nodes, 4 rounds.
  const double flops = 3.0 * 2 * 784 * 10 * 32 * 4 * 4;
  const double per_s = flops / plain.at("time").at("wall_s").get<double>();
  CHECK(plain.at("score").at("flops_per_s").get<double>() == doctest::Approx(per_s));
  const double error = 1 - plain.at("final").at("accuracy").get<double>();
  CHECK(plain.at("score").at("regulated").get<double>() ==
        doctest::Approx(per_s * std::abs(std::log(error))));
  CHECK(result.at("runs")[1].at("score").is_null());  // a convolution's shape does not say
}

TEST_CASE("a file names the runs of a comparison as a list") {
  const Scratch scratch;
  const auto file = scratch.write("c.toml", "rounds = 2\nrun = [\"allreduce\", \"dcd quant:8\"]\n");
  const auto result = run(small_compare({"--config", file.string(), "--json", "-"})).json();
  CHECK(names(result.at("runs")) == Names{"allreduce", "dcd quant:8"});
  CHECK(result.at("runs")[1].at("rounds") == 2);
}

TEST_CASE("a run that fails keeps the others, and is named") {
  const Scratch scratch;
  const auto file = (scratch.path() / "result.json").string();
  const auto ended = run(
      small_compare({"--rounds", "300", "--run", "dpsgd rounds=2", "--run",
                     "dcd lr=10 weight-decay=1", "--run", "allreduce rounds=2", "--json", file}));
  CHECK(ended.status == 1);
  CHECK(contains(ended.err, "sotto: dcd lr=10 weight-decay=1: node "));
  CHECK(contains(ended.out, "failed"));
  CHECK(contains(ended.out, "allreduce rounds=2"));
  const auto result = json::parse(std::ifstream(file));
  CHECK(names(result.at("runs")) == Names{"dpsgd rounds=2", "allreduce rounds=2"});
  CHECK(names(result.at("failed")) == Names{"dcd lr=10 weight-decay=1"});
}

TEST_CASE("an interrupted comparison shows the runs that are finished") {
  Process process(command(small_compare(
      {"--run", "dpsgd rounds=2", "--run", "dcd rounds=1000000000", "--run", "choco"})));
  REQUIRE(process.wait_for("run 2 of 3"));
  process.send(SIGINT);
  const auto ended = process.wait();
  CHECK(ended.status == 128 + SIGINT);
  CHECK(contains(ended.out, "interrupted"));
  CHECK(contains(ended.out, "not run"));
  CHECK(contains(ended.err, "dcd rounds=1000000000: interrupted"));
}

TEST_CASE("compare refuses words that contradict each other or say nothing") {
  struct Case {
    Arguments words;
    std::string says;
  };
  const Case cases[] = {
      {{}, "--run: none is given"},
      {{"--run", ""}, "it starts with an algorithm"},
      {{"--run", "dcd quant:8 sign"}, "two values for --compressor: quant:8 and sign"},
      {{"--run", "dcd ring topology=star"}, "two values for --topology"},
      {{"--run", "dcd algorithm=choco"}, "two values for --algorithm"},
      {{"--run", "dcd lr=0.1 lr=0.2"}, "two values for --lr"},
      {{"--run", "dcd qaunt:8"}, "did you mean quant?"},
      {{"--run", "dcdd"}, "did you mean dcd?"},
      {{"--run", "dcd momentun=0.1"}, "did you mean momentum?"},
      {{"--run", "dcd lr=-1"}, "--run 'dcd lr=-1': --lr: '-1' is refused"},
      {{"--run", "dcd lazy"}, "write lazy=true"},
      {{"--run", "dcd weight_decay"}, "write weight_decay=LAMBDA"},
      {{"--run", "dcd json=x"}, "json holds for all runs"},
      {{"--run", "dcd", "--compressor", "sign"}, "--compressor: each run names its own"},
      {{"--run", "dcd", "--run", "dpsgd", "--checkpoint", "/nowhere"}, "overwrite each other"},
      {{"--run", "dcd", "--html", "/nowhere/x.html"}, "--html: '/nowhere/x.html' is refused"},
  };
  for (const Case& one : cases) {
    const auto ended = run(small_compare(one.words));
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(ended.out.empty());
    CHECK(contains(ended.err, one.says));
  }
}

TEST_CASE("compare at equal bytes: each run where it had sent what the thriftiest sent in all") {
  const auto result =
      run(small_compare({"--rounds", "8", "--eval-every", "2", "--equal", "bytes", "--run",
                         "allreduce", "--run", "allreduce rounds=4", "--json", "-"}))
          .json();
  const auto& whole = result.at("runs")[0];
  const auto& half = result.at("runs")[1];
  const double spent = half.at("history").back().at("bytes_per_node");
  CHECK(whole.at("at_equal").at("bytes_per_node") == spent);
  CHECK(whole.at("at_equal").at("round") == doctest::Approx(4));
  CHECK(half.at("at_equal").at("round") == doctest::Approx(4));
  CHECK(whole.at("at_equal").at("loss").get<double>() ==
        doctest::Approx(half.at("final").at("loss").get<double>()));
  const auto early =
      run(small_compare({"--rounds", "8", "--eval-every", "8", "--equal", "bytes", "--run",
                         "allreduce", "--run", "allreduce rounds=4", "--json", "-"}))
          .json();
  CHECK(early.at("runs")[0].at("at_equal").is_null());  // it was first evaluated after 8 rounds
  const auto wrong = run(small_compare({"--equal", "energy", "--run", "allreduce"}));
  CHECK(wrong.status == 2);
  CHECK(contains(wrong.err, "--equal: 'energy'"));
}

TEST_CASE("compare repeats each run with as many seeds, and each repeat is that seed's run") {
  const Scratch scratch;
  const auto page = (scratch.path() / "page.html").string();
  const auto file = (scratch.path() / "result.json").string();
  const auto ended =
      run(small_compare({"--rounds", "4", "--seed", "7", "--seeds", "3", "--run", "choco sign",
                         "--run", "allreduce", "--html", page, "--json", file}));
  CHECK(ended.status == 0);
  CHECK(contains(ended.out, "means over 3 seeds"));
  const auto result = json::parse(std::ifstream(file));
  const auto& runs = result.at("runs");
  REQUIRE(names(runs) ==
          Names{"choco sign", "choco sign", "choco sign", "allreduce", "allreduce", "allreduce"});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    CHECK(runs[i].at("config").at("seed") == 7 + i % 3);
  }
  const auto alone =
      run(small_compare({"--rounds", "4", "--seed", "8", "--run", "choco sign", "--json", "-"}))
          .json();
  CHECK(alone.at("runs")[0].at("parameters_sha256") == runs[1].at("parameters_sha256"));
  CHECK(runs[0].at("parameters_sha256") != runs[1].at("parameters_sha256"));
  const std::string html = text_of_file(page);
  CHECK_FALSE(contains(html, "stroke-dasharray"));
  CHECK(contains(html, "<polygon"));  // the band between the seeds
  CHECK(contains(html, "means over 3 seeds"));
}

TEST_CASE("compare refuses repeats that would overwrite each other, and none at all") {
  const auto ended = run(small_compare(
      {"--rounds", "2", "--seeds", "2", "--run", "dpsgd dump-parameters=/nowhere/x.csv"}));
  CHECK(ended.status == 2);
  CHECK(contains(ended.err, "overwrite each other"));
  const auto none = run(small_compare({"--seeds", "0", "--run", "dpsgd"}));
  CHECK(none.status == 2);
  CHECK(contains(none.err, "--seeds"));
}

TEST_CASE("compare shows no mean over the seeds that happen to have a standing") {
  // Times never agree, and there is one evaluation: of all runs only the fastest has a standing.
  const auto ended = run(small_compare({"--rounds", "4", "--eval-every", "0", "--seeds", "2",
                                        "--equal", "time", "--run", "allreduce"}));
  CHECK(ended.status == 0);
  const auto table = ended.out.substr(ended.out.find("after "));
  CHECK(contains(table, "– (1 of 2)  – (1 of 2)"));
  CHECK(contains(table, "with the other seeds: it had spent more before its first evaluation"));
}

TEST_CASE("compare marks a run that diverged") {
  const auto ended = run(small_compare({"--rounds", "20", "--eval-every", "2", "--run", "allreduce",
                                        "--run", "dpsgd lr=100 weight-decay=0.1"}));
  CHECK(ended.status == 0);
  const auto line = [&](const char* name) {
    const auto at = ended.out.find(std::string("\n") + name, ended.out.find("rounds  loss"));
    return ended.out.substr(at + 1, ended.out.find('\n', at + 1) - at - 1);
  };
  CHECK(contains(line("dpsgd lr=100"), " ! "));
  CHECK_FALSE(contains(line("allreduce"), " ! "));
  CHECK(contains(ended.out, "!: the loss ended above its first evaluation"));
}

TEST_CASE("compare lists what is wrong with all runs at once, and warns of none") {
  const Arguments warned = {"--rounds", "2", "--run", "dpsgd communication-interval=3"};
  Arguments words = warned;
  words.insert(words.end(), {"--run", "dcd topk:0.1", "--run", "dcd qaunt:8", "--run", "choco"});
  const auto ended = run(small_compare(words));
  CHECK(ended.status == 2);
  CHECK(contains(ended.err, "sotto: --run 'dcd topk:0.1': "));
  CHECK(contains(ended.err, "sotto: --run: 'dcd qaunt:8' is refused"));
  CHECK_FALSE(contains(ended.err, "'choco'"));
  CHECK_FALSE(contains(ended.err, "warning"));
  CHECK(contains(run(small_compare(warned)).err,
                 "warning: dpsgd communication-interval=3: --communication-interval 3"));
}

TEST_CASE("the page cuts off a run that diverges, and tells more than eight curves apart") {
  Arguments words = small_compare({"--rounds", "20", "--eval-every", "2"});
  for (int i = 0; i < 8; ++i) {
    words.insert(words.end(), {"--run", "allreduce"});
  }
  words.insert(words.end(), {"--run", "dpsgd lr=100 weight-decay=0.1"});
  const auto html = page_of(words);
  CHECK_FALSE(contains(html, ">1e+"));  // the label of a decade of the loss that it comes to
  CHECK(contains(html, "stroke=\"#0072b2\" stroke-dasharray="));
  CHECK_FALSE(contains(html, "stroke=\"#d55e00\" stroke-dasharray="));
}

TEST_CASE("the page labels every so many decades of a long axis") {
  const Scratch scratch;
  const auto problem =
      scratch.write("p.json", R"({"start": [1], "nodes": [{"h": [1], "c": [0]}]})").string();
  const auto html = page_of({"compare", "--task", "quadratic:" + problem, "--rounds", "30",
                             "--eval-every", "1", "--run", "allreduce lr=0.9"});
  CHECK(contains(html, ">1e-10<"));  // of 1e-60 … 1
  CHECK_FALSE(contains(html, ">1e-11<"));
}

}  // namespace sotto::test::compare_test
