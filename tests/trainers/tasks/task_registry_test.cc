#include <sotto/trainers/tasks/task_registry.h>

#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "support/scratch.h"

namespace sotto::test::task_registry_test {

TEST_CASE("nodes share an epoch, start alike and see different data") {
  const auto data = load_task("digits,train=101,test=10");
  const TaskFactory tasks(data, {.batch = 10, .nodes = 4, .seed = 2});
  CHECK(tasks.options().model == data->default_model);
  std::size_t examples = 0;
  for (const std::size_t count : tasks.examples_per_node()) {
    examples += count;
  }
  CHECK(examples == 101);
  std::set<std::vector<float>> gradients;
  std::vector<float> start;
  for (Rank rank = 0; rank < 4; ++rank) {
    const auto task = tasks.make(rank);
    CHECK(task->rounds_per_epoch() == 3);  // ⌈101 / 40⌉
    std::vector<float> x(task->dimension());
    task->initialize(x, 2);
    if (rank == 0) {
      start = x;
    }
    CHECK(x == start);
    std::vector<float> gradient(x.size());
    task->loss_and_gradient(0, x, gradient);
    gradients.insert(gradient);
  }
  CHECK(gradients.size() == 4);
}

TEST_CASE("an epoch has at least one round") {
  const TaskFactory tasks(load_task("digits,train=5,test=1"), {.batch = 100, .nodes = 5});
  CHECK(tasks.make(4)->rounds_per_epoch() == 1);
}

TEST_CASE("wrong tasks and options are refused") {
  for (const char* spec : {"", "digit", "digits:x", "digits,", "digits,train", "digits,train=",
                           "digits,train=1x", "digits,train=-1", "digits,size=3", "digits,train=0",
                           "digits,test=0", "digits,train=99999999999999999999", "mnist2:x"}) {
    CAPTURE(spec);
    CHECK_THROWS_AS(load_task(spec), Error);
  }
  const auto data = load_task("digits,train=20,test=1");
  const auto refused = [&](const TaskOptions& options) {
    CHECK_THROWS_AS(TaskFactory(data, options), Error);
  };
  refused({.model = "mlp:x"});
  refused({.partition = "iid2"});
  refused({.batch = 0});
  refused({.batch = 65537});
  refused({.nodes = 21});
  refused({.nodes = 0});
}

TEST_CASE("a mistyped parameter is refused with the nearest one, unless it belongs to a path") {
  const auto told = [](const std::string& spec) { return test::refusal([&] { load_task(spec); }); };
  CHECK(test::contains(told("libsvm:a.txt,featuers=5"), "did you mean features?"));
  CHECK(test::contains(told("text:a.txt,contxt=5"), "did you mean context?"));
  CHECK(test::contains(told("digits,tran=5"), "did you mean train? it has train, test, seed"));
  CHECK(test::contains(told("csv:a.csv,traget=a"), "did you mean target?"));
  CHECK(test::contains(told("csv:a.csv,label=5"), "it has target, drop, regression"));
  CHECK(test::contains(told("occupancy:a,label=5"), "it has none"));
  CHECK(test::contains(told("csv:nowhere/a,b.csv"), "nowhere/a,b.csv: there is no such file"));
  const test::Scratch scratch;
  const auto file = scratch.write("a,lr=1.csv", "x,label\n1,0\n2,1\n3,0\n4,1\n5,0\n");
  CHECK(load_task("csv:" + file.string())->dataset->classes() == 2);
}

TEST_CASE("tables for `sotto list` are complete") {
  std::set<std::string_view> names;
  for (const TaskInfo& info : tasks()) {
    CHECK(names.insert(info.name).second);
    CHECK(info.synopsis.starts_with(info.name));
    CHECK(!info.summary.empty());
  }
  CHECK(names.contains("digits"));
}

}  // namespace sotto::test::task_registry_test
