#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/trainers/data/loaders.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "support/scratch.h"
#include "support/skip.h"

namespace sotto::test::libsvm_test {

using test::contains;

namespace {

std::string refusal_of(const std::string& content) {
  const test::Scratch scratch;
  const auto file = scratch.write("rows.svm", content);
  const std::string message = test::refusal([&] { load_libsvm(file); });
  CHECK(contains(message, "rows.svm"));
  return message;
}

}  // namespace

TEST_CASE("sparse rows are read, labels mapped in ascending order, comments skipped") {
  const test::Scratch scratch;
  std::string content = "# made by hand\n";
  for (int i = 0; i < 10; ++i) {
    content += i % 2 == 0 ? "+1 2:0.5 5:-3 # even\r\n" : "-1\t1:1  4:2e-1 \n";
  }
  const auto file = scratch.write("rows.svm", content);
  const auto data = load_libsvm(file);
  CHECK(data->train().size() == 8);
  CHECK(data->test().size() == 2);
  CHECK(data->features() == 5);
  CHECK(data->classes() == 2);
  for (const Examples* part : {&data->train(), &data->test()}) {
    std::vector<float> row(5, 9.0F);
    for (std::size_t i = 0; i < part->size(); ++i) {
      part->copy_row(i, row);
      CHECK(row == (part->labels()[i] == 1 ? std::vector<float>{0, 0.5F, 0, 0, -3}
                                           : std::vector<float>{1, 0, 0, 0.2F, 0}));
    }
  }
  CHECK(load_task("libsvm:" + file.string() + ",features=9")->dataset->features() == 9);
  CHECK_THROWS_AS(load_task("libsvm:" + file.string() + ",features=4"), Error);
  CHECK_THROWS_AS(load_task("libsvm:" + file.string() + ",features=2000000"), Error);
}

TEST_CASE("several classes, and rows without features") {
  const test::Scratch scratch;
  const auto data = load_libsvm(scratch.write("rows.svm", "3 1:1\n1\n2 2:1\n1 1:2\n7\n"));
  CHECK(data->classes() == 4);
  CHECK(data->features() == 2);
  CHECK(data->train().size() + data->test().size() == 5);
}

TEST_CASE("damaged rows are refused with the line") {
  CHECK(contains(refusal_of(""), "no example"));
  CHECK(contains(refusal_of("1\n2\n"), "no example"));
  CHECK(contains(refusal_of("1 1:1\n"), "1 row"));
  CHECK(contains(refusal_of("1 1:1\n1 1:1\n"), "two"));
  const std::string good = "1 1:1\n0 2:1\n";
  CHECK(contains(refusal_of(good + "x 1:1\n"), "line 3: label"));
  CHECK(contains(refusal_of(good + "nan 1:1\n"), "line 3"));
  CHECK(contains(refusal_of(good + "1 0:1\n"), "count from 1"));
  CHECK(contains(refusal_of(good + "1 1048577:1\n"), "1048576"));
  CHECK(contains(refusal_of(good + "1 2:1 2:1\n"), "index 2 stands twice"));
  CHECK(contains(refusal_of(good + "1 2:1 1:1 2:4\n"), "index 2 stands twice"));
  for (const char* bad : {"5", "5:", ":5", "-1:1", "1.5:1", "1:x", "1:nan", "1:inf", "1:1e39",
                          "1:2:3", "99999999999999999999:1", "qid:x", "1:1 qid:3", "1:1,2:2"}) {
    CAPTURE(bad);
    CHECK(contains(refusal_of(good + fmt::format("1 {}\n", bad)), "line 3"));
  }
  std::string classes;
  for (int i = 0; i < 1001; ++i) {
    classes += fmt::format("{} 1:1\n", i);
  }
  CHECK(contains(refusal_of(classes), "1001 different labels"));
}

TEST_CASE("groups, rows out of order and indices from 0 are read as they are meant") {
  const test::Scratch scratch;
  const auto file = scratch.write("rows.svm",
                                  "2 qid:1 3:5 1:4\n1 qid:1 2:1\n2 qid:2 3:5 1:4 # a comment\n"
                                  "1 2:1\n+1 2:1\n");
  const auto data = load_libsvm(file);
  CHECK(data->features() == 3);
  CHECK(data->classes() == 2);
  REQUIRE(!data->warnings().empty());
  CHECK(contains(data->warnings().front(), "qid"));
  std::vector<float> row(3);
  data->train().copy_row(0, row);
  CHECK(row == (data->train().labels()[0] == 1 ? std::vector<float>{4, 0, 5}
                                               : std::vector<float>{0, 1, 0}));
  const std::string zero =
      "libsvm:" + scratch.write("zero.svm", "1 0:7 4:1\n0 0:7 4:1\n1 0:7\n").string();
  CHECK(contains(test::refusal([&] { load_task(zero); }), zero + ",zero-based"));
  const auto based = load_task(zero + ",zero-based")->dataset;
  CHECK(based->features() == 5);
  std::vector<float> five(5);
  based->train().copy_row(0, five);
  CHECK(five[0] == 7);
  CHECK(contains(refusal_of("1,2 1:1\n0 1:1\n"), "one label"));
  CHECK(contains(refusal_of("0.5 1:1\n0.25 1:1\n0.75 1:1\n"), "not all whole numbers"));
}

TEST_CASE("Adult has its rows and can be learned") {
  const auto folder = test::real_data();
  if (!folder) {
    SOTTO_SKIP("SOTTO_DATA is not set");
  }
  // This file uses the first 122 of the 123 binary features of the encoding.
  const std::string spec = "libsvm:" + (*folder / "adult" / "a9a.t").string();
  CHECK(load_task(spec)->dataset->features() == 122);
  const auto data = load_task(spec + ",features=123");
  CHECK(data->dataset->train().size() + data->dataset->test().size() == 16281);
  CHECK(data->dataset->test().size() == 3256);
  CHECK(data->dataset->features() == 123);
  CHECK(data->dataset->classes() == 2);
  const TaskFactory tasks(data, {});
  const auto task = tasks.make(0);
  std::vector<float> x(task->dimension());
  std::vector<float> gradient(x.size());
  for (Round round = 0; round < 2 * task->rounds_per_epoch(); ++round) {
    task->loss_and_gradient(round, x, gradient);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] -= 0.1F * gradient[i];
    }
  }
  CHECK(task->evaluate(x).accuracy > 0.83);
}

}  // namespace sotto::test::libsvm_test
