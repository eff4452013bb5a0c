// A regression in every command that shows how good a model is, and `sotto data check`.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/program.h"
#include "cli/sites.h"
#include "support/skip.h"
#include "support/text_of_file.h"

namespace sotto::test::regression_test {

using nlohmann::json;

namespace {

/// y = 100 + 30 a − 20 b, a bit off.
std::string table(const Scratch& scratch) {
  const auto path = scratch.path() / "houses.csv";
  std::ofstream out(path);
  out << "a,b,y\n";
  for (int i = 0; i < 200; ++i) {
    out << fmt::format("{},{},{}\n", i * 7 % 11, i * 5 % 13,
                       100 + 30 * (i * 7 % 11) - 20 * (i * 5 % 13) + 0.5 * (i % 3));
  }
  return path.string();
}

std::string task_in(const Scratch& scratch) { return "csv:" + table(scratch) + ",regression"; }

std::string scenario_in(const Scratch& scratch, const std::string& target) {
  const auto path = scratch.path() / "scenario.toml";
  std::ofstream(path) << fmt::format(
      "sotto-scenario = 1\nrun = [\"allreduce\", \"dcd quant:8 ring\"]\n"
      "nodes = {{ count = 3, gradient = \"5 ms\" }}\nnetwork = {{ link = \"wan\" }}\n"
      "task = {{ task = \"{}\", rounds = 40, eval-every = 10 }}\ntarget = {{ {} }}\n",
      task_in(scratch), target);
  return path.string();
}

}  // namespace

TEST_CASE("train shows R² and RMSE of a regression in place of an accuracy") {
  const Scratch scratch;
  const Arguments words = {"train", "--task", task_in(scratch), "--nodes", "2", "--rounds", "60"};
  const auto shown = run(words);
  CHECK(shown.status == 0);
  CHECK(contains(shown.out, "R²"));
  CHECK(contains(shown.out, "RMSE"));
  CHECK_FALSE(contains(shown.out, "accuracy"));
  Arguments more = words;
  more.insert(more.end(), {"--json", "-"});
  const auto result = run(more).json();
  CHECK(result.at("final").at("accuracy").is_null());
  CHECK(result.at("final").at("r2").get<double>() > 0.9);
  CHECK(result.at("final").at("rmse").get<double>() < 60);
  CHECK(result.at("history").back().at("r2") == result.at("final").at("r2"));
  CHECK(result.at("config").at("model") == "linear");
}

TEST_CASE("R² survives a checkpoint") {
  const Scratch scratch;
  const std::string task = task_in(scratch);
  const auto saved = (scratch.path() / "saved").string();
  const Arguments words = {"train", "--task",       task, "--nodes",      "2",  "--rounds",
                           "40",    "--eval-every", "10", "--checkpoint", saved};
  Arguments first = words;
  first[6] = "20";
  REQUIRE(run(first).status == 0);
  Arguments second = words;
  second.insert(second.end(), {"--resume", "--json", "-"});
  Arguments whole = {"train", "--task",       task, "--nodes", "2", "--rounds",
                     "40",    "--eval-every", "10", "--json",  "-"};
  const auto resumed = run(second).json();
  const auto uninterrupted = run(whole).json();
  REQUIRE(resumed.at("history").size() == uninterrupted.at("history").size());
  for (std::size_t i = 0; i < resumed.at("history").size(); ++i) {
    CHECK(resumed.at("history")[i].at("r2") == uninterrupted.at("history")[i].at("r2"));
    CHECK(resumed.at("history")[i].at("rmse") == uninterrupted.at("history")[i].at("rmse"));
  }
}

TEST_CASE("compare sets regressions side by side by R², on its page too") {
  const Scratch scratch;
  const auto page = (scratch.path() / "page.html").string();
  const auto ended =
      run({"compare", "--task", task_in(scratch), "--nodes", "3", "--rounds", "40", "--eval-every",
           "10", "--equal", "bytes", "--run", "allreduce", "--run", "dcd quant:8", "--html", page});
  CAPTURE(ended.err);
  CHECK(ended.status == 0);
  CHECK(contains(ended.out, "R²"));
  CHECK_FALSE(contains(ended.out, "accuracy"));
  const std::string html = text_of_file(page);
  CHECK(contains(html, "R² against rounds"));
  CHECK_FALSE(contains(html, "ccuracy"));
}

TEST_CASE("simulate and plan aim at R²") {
  const Scratch scratch;
  const std::string path = scenario_in(scratch, "r2 = 0.8");
  const auto result = run({"simulate", path, "--json", "-"}).json();
  for (const auto& one : result.at("runs")) {
    CHECK(one.at("time_to_target_s").is_number());
    CHECK(one.at("final").at("r2_worst_node").get<double>() <=
          one.at("final").at("r2_mean_node").get<double>());
    CHECK_FALSE(one.at("final").contains("accuracy_worst_node"));
  }
  const auto shown = run({"simulate", path});
  CHECK(contains(shown.out, "R²"));
  CHECK_FALSE(contains(shown.out, "accuracy"));
  const auto planned = run({"plan", path, "--budget", "3", "--quiet", "--json", "-"});
  CAPTURE(planned.err);
  CHECK(planned.status == 0);
  const auto wrong = run({"simulate", scenario_in(scratch, "accuracy = 0.8")});
  CHECK(wrong.status == 2);
  CHECK(contains(wrong.err, "give r2"));
}

TEST_CASE("R² is for regressions alone") {
  const Scratch scratch;
  const auto path = (scratch.path() / "digits.toml").string();
  std::ofstream(path)
      << "sotto-scenario = 1\nrun = [\"allreduce\"]\nnodes = { count = 2, gradient = \"1 ms\" }\n"
         "network = { link = \"wan\" }\n"
         "task = { task = \"digits,train=40,test=10\" }\ntarget = { r2 = 0.5 }\n";
  const auto ended = run({"simulate", path});
  CHECK(ended.status == 2);
  CHECK(contains(ended.err, "give accuracy"));
}

TEST_CASE("warnings about data are told by the commands that train on them") {
  const Scratch scratch;
  const auto path = (scratch.path() / "rows.csv").string();
  {
    std::ofstream out(path);
    out << ",a,b,label\n";
    for (int i = 0; i < 40; ++i) {
      out << fmt::format("{},{},{},{}\n", i, i * 7 % 11, i * 5 % 13, i % 2);
    }
  }
  const auto trained = run({"train", "--task", "csv:" + path, "--nodes", "2", "--rounds", "4"});
  CHECK(trained.status == 0);
  CHECK(contains(trained.err, "warning: "));
  CHECK(contains(trained.err, "numbers the rows"));
  const auto compared = run(
      {"compare", "--task", "csv:" + path, "--nodes", "2", "--rounds", "4", "--run", "allreduce"});
  CHECK(contains(compared.err, "numbers the rows"));
}

TEST_CASE("sites train a regression together, and export what scales it back") {
  if (!has_transport("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Sites sites({"a", "b"});
  const Scratch scratch;
  for (const char* name : {"a", "b"}) {
    std::filesystem::copy_file(table(scratch), sites.folder(name) / "houses.csv");
    std::string file = text_of_file(sites.file(name));
    const auto replace = [&file](const std::string& from, const std::string& to) {
      const auto at = file.find(from);
      REQUIRE(at != std::string::npos);
      file.replace(at, from.size(), to);
    };
    replace("digits,train=600,test=200", "csv:houses.csv,regression");
    replace("model = \"softmax\"",
            "model = \"linear\"\nrounds = 60\neval-every = 20\nexport = \"model.safetensors\"");
    std::ofstream(sites.file(name)) << file;
  }
  sites.start_all();
  const auto result = sites.finish("a");
  (void)sites.finish("b");
  CHECK(result.at("final").at("accuracy").is_null());
  CHECK(result.at("final").at("r2").get<double>() > 0.9);
  CHECK(result.at("evaluation").at("rmse").is_number());
  const std::string model = text_of_file((sites.folder("a") / "model.safetensors").string());
  CHECK(contains(model, "target_mean"));
  CHECK(contains(model, "target_deviation"));
}

TEST_CASE("classes that are words keep their names in the result") {
  const Scratch scratch;
  const auto path = (scratch.path() / "flowers.csv").string();
  {
    std::ofstream out(path);
    out << "a;b;kind\n";
    for (int i = 0; i < 60; ++i) {
      out << fmt::format("{},5;{};{}\n", i * 7 % 11, i * 5 % 13, i % 2 ? "rose" : "lily");
    }
  }
  const auto result =
      run({"train", "--task", "csv:" + path, "--nodes", "2", "--rounds", "4", "--json", "-"})
          .json();
  CHECK(result.at("classes") == json({"lily", "rose"}));
}

TEST_CASE("data check says what is seen, and exits with 2 where it cannot be trained on") {
  const Scratch scratch;
  const std::string file = table(scratch);
  const auto seen = run({"data", "check", "csv:" + file + ",regression"});
  CHECK(seen.status == 0);
  CHECK(contains(seen.out, "separator comma"));
  CHECK(contains(seen.out, "target y: mean"));
  const auto refused = run({"data", "check", file, "--json", "-"});
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, ",regression"));
  const auto result = json::parse(refused.out);
  CHECK(contains(result.at("refused").get<std::string>(), "not all whole numbers"));
  CHECK(result.at("rows") == 200);
  CHECK(result.at("columns")[2].at("role") == "target");
  const auto digits = run({"data", "check", "digits,train=30,test=10", "--json", "-"}).json();
  CHECK(digits.at("train") == 30);
  CHECK(digits.at("classes").size() == 10);
  CHECK(digits.at("refused").is_null());
}

}  // namespace sotto::test::regression_test
