#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/trainers/data/loaders.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "support/scratch.h"
#include "support/skip.h"

namespace sotto::test::csv_test {

using test::contains;

namespace {

std::string refusal_of(const std::string& content) {
  const test::Scratch scratch;
  const auto file = scratch.write("table.csv", content);
  const std::string message = test::refusal([&] { load_csv(file); });
  CHECK(contains(message, "table.csv"));
  return message;
}

std::shared_ptr<const Dataset> load(const std::string& content) {
  const test::Scratch scratch;
  return load_csv(scratch.write("table.csv", content));
}

std::vector<float> row_of(const Examples& examples, std::size_t row) {
  std::vector<float> values(examples.features());
  examples.copy_row(row, values);
  return values;
}

}  // namespace

TEST_CASE("features have mean 0 and deviation 1 over the training rows") {
  std::string content = "a,b,c,kind\n";
  for (int i = 0; i < 100; ++i) {
    content += fmt::format("{},{},7,{}\n", i, 1000 - 3 * i, i % 3 - 1);
  }
  const auto data = load(content);
  CHECK(data->train().size() == 80);
  CHECK(data->test().size() == 20);
  CHECK(data->features() == 3);
  CHECK(data->classes() == 3);
  for (std::size_t column = 0; column < 2; ++column) {
    double sum = 0;
    double squares = 0;
    for (std::size_t row = 0; row < 80; ++row) {
      const auto value = static_cast<double>(row_of(data->train(), row)[column]);
      sum += value;
      squares += value * value;
    }
    CHECK(std::abs(sum / 80) < 1e-6);
    CHECK(squares / 80 == doctest::Approx(1));
  }
  // A constant column says nothing, and is not blown up.
  CHECK(row_of(data->test(), 3)[2] == 0);
  // The label belongs to its row: b falls as a rises.
  for (std::size_t row = 0; row < 20; ++row) {
    const auto values = row_of(data->test(), row);
    CHECK(values[1] == doctest::Approx(-values[0]));
  }
}

TEST_CASE("labels follow their rows through the split, and every row is used once") {
  std::string content = "x,y\n";
  for (int i = 0; i < 50; ++i) {
    content += fmt::format("{},{}\n", i, i >= 25 ? 4 : 2);
  }
  const auto data = load(content);
  std::set<float> seen;
  for (const Examples* part : {&data->train(), &data->test()}) {
    float largest_low = -10;
    float least_high = 10;
    for (std::size_t row = 0; row < part->size(); ++row) {
      const float x = row_of(*part, row)[0];
      seen.insert(x);
      (part->labels()[row] == 0 ? largest_low : least_high) =
          part->labels()[row] == 0 ? std::max(largest_low, x) : std::min(least_high, x);
    }
    CHECK(largest_low < least_high);
  }
  CHECK(seen.size() == 50);
  CHECK(load(content)->train().labels()[0] == data->train().labels()[0]);
}

TEST_CASE("quotes, blanks, blank lines, CRLF, a byte-order mark and a named label are read") {
  const auto data = load(
      "\xEF\xBB\xBF\"Class\" , \"a \"\"b\"\"\",c\r\n 1 ,\"2\",+3\r\n\r\n0, 4 ,5e0\r\n1,2,-6.5");
  CHECK(data->features() == 2);
  CHECK(data->train().size() + data->test().size() == 3);
  CHECK(data->classes() == 2);
}

TEST_CASE("damaged tables are refused with the line") {
  CHECK(contains(refusal_of(""), "empty"));
  CHECK(contains(refusal_of("\n\n"), "empty"));
  CHECK(contains(refusal_of("a,b\n"), "no rows"));
  CHECK(contains(refusal_of("1,2\n3,4\n"), "line 1: a header"));
  CHECK(contains(refusal_of("a,b\n1,0\n2,1\n3\n"), "line 4: 2 fields are expected; found 1"));
  CHECK(contains(refusal_of("a,b\n1,0\n2,1,1\n"), "line 3"));
  CHECK(contains(refusal_of("a,b\n1,0,\n"), "line 2"));
  CHECK(contains(refusal_of("a,b\n1,0\nx,1\n"), "line 3: column 'a'"));
  CHECK(contains(refusal_of("a,b\n1,0\n,1\n"), "line 3"));
  for (const char* bad :
       {"nan", "inf", "-inf", "1e999", "1x", "0x10", "1 2", "--1", "+-1", "1e39"}) {
    CAPTURE(bad);
    CHECK(contains(refusal_of(fmt::format("a,b\n1,0\n\n{},1\n", bad)), "line 4"));
  }
  CHECK(contains(refusal_of("a,b\n\"1,0\n"), "quote"));
  CHECK(contains(refusal_of("a,b\n\"1\"2,0\n"), "comma"));
  CHECK(contains(refusal_of("a,b\n1,0\n"), "1 row"));
  CHECK(contains(refusal_of("a,b\n1,0\n2,0\n3,0\n"), "two"));
  CHECK(contains(refusal_of("label\n1\n2\n"), "at least one feature"));
  CHECK(contains(refusal_of(std::string("a,b\n1,0\n2,\0\n", 12)), "line 3"));
  CHECK(contains(refusal_of(std::string(200000, ',') + "\n1\n"), "columns"));
  CHECK(contains(refusal_of(std::string(100000, '"')), "table.csv"));
}

TEST_CASE("a table with a regression target is refused") {
  std::string content = "x,y\n";
  for (int i = 0; i < 1500; ++i) {
    content += fmt::format("1,{}.5\n", i);
  }
  CHECK(contains(refusal_of(content), "1500 different labels"));
}

TEST_CASE("folders and files that are not there are refused") {
  const test::Scratch scratch;
  CHECK(contains(test::refusal([&] { load_csv(scratch.path()); }), "it is a folder"));
  CHECK(contains(test::refusal([&] { load_csv(scratch.path() / "none"); }), "no such file"));
}

TEST_CASE("occupancy's row numbers and dates are left out") {
  const test::Scratch scratch;
  const std::string header = "\"date\",\"T\",\"Light\",\"Occupancy\"\n";
  const auto rows = [&](int count) {
    std::string content = header;
    for (int i = 0; i < count; ++i) {
      content += fmt::format("\"{}\",\"2015-02-04 17:51:{:02}\",{},{},{}\n", i + 1, i, 20 + i,
                             100 * i, i % 2);
    }
    return content;
  };
  scratch.write("datatraining.txt", rows(6));
  scratch.write("datatest.txt", rows(3));
  CHECK(contains(test::refusal([&] { load_occupancy(scratch.path()); }), "datatest2.txt"));
  scratch.write("datatest2.txt", rows(2));
  const auto data = load_task("occupancy:" + scratch.path().string())->dataset;
  CHECK(data->features() == 2);
  CHECK(data->train().size() == 6);
  CHECK(data->test().size() == 5);
  CHECK(data->classes() == 2);
  CHECK(row_of(data->train(), 0) == row_of(data->test(), 0));  // scaled alike
  scratch.write("datatest2.txt", "date,T,Occupancy\nx,1,0\n");
  CHECK(contains(test::refusal([&] { load_occupancy(scratch.path()); }), "columns"));
  scratch.write("datatest2.txt", header + "\"1\",x,1,2,0\n3,x,1,2\n");
  CHECK(contains(test::refusal([&] { load_occupancy(scratch.path()); }), "line 3"));
}

TEST_CASE("a test value out of all proportion is refused, not turned into an infinity") {
  const test::Scratch scratch;
  scratch.write("datatraining.txt", "date,T,Occupancy\nx,1,0\nx,1.000001,1\n");
  scratch.write("datatest.txt", "date,T,Occupancy\nx,1e38,0\n");
  scratch.write("datatest2.txt", "date,T,Occupancy\nx,1,0\n");
  CHECK(contains(test::refusal([&] { load_occupancy(scratch.path()); }), "column 'T'"));
}

TEST_CASE("the room occupancy data have their rows and can be learned") {
  const auto folder = test::real_data();
  if (!folder) {
    SOTTO_SKIP("SOTTO_DATA is not set");
  }
  const auto data = load_task("occupancy:" + (*folder / "occupancy").string());
  CHECK(data->dataset->train().size() == 8143);
  CHECK(data->dataset->test().size() == 2665 + 9752);
  CHECK(data->dataset->features() == 5);
  CHECK(data->dataset->classes() == 2);
  const TaskFactory tasks(data, {.batch = 64});
  const auto task = tasks.make(0);
  std::vector<float> x(task->dimension());
  std::vector<float> gradient(x.size());
  for (Round round = 0; round < 2 * task->rounds_per_epoch(); ++round) {
    task->loss_and_gradient(round, x, gradient);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] -= 0.2F * gradient[i];
    }
  }
  CHECK(task->evaluate(x).accuracy > 0.97);
}

}  // namespace sotto::test::csv_test
