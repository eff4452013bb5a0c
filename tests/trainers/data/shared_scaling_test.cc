// A scaling of several tables against mean and deviation of all their rows in one place.
#include <sotto/trainers/data/shared_scaling.h>

#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/philox.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "support/scratch.h"

namespace sotto::test::shared_scaling_test {

namespace {

constexpr std::uint64_t kSeed = 5;

/// A table of a site, and its rows in one list.
std::string table_of(std::uint32_t site, std::size_t rows, std::vector<std::vector<double>>& all) {
  RandomStream stream({.seed = kSeed, .purpose = Purpose::test, .bucket = site});
  std::string text = "age,\"bmi, now\",smokes,label\n";
  for (std::size_t i = 0; i < rows; ++i) {
    const double age = std::floor(20 + 10 * site + 60 * stream.uniform());
    const double bmi = std::floor(1000 * (15 + 25 * stream.uniform())) / 1000;
    const bool smokes = stream.uniform() < 0.3;
    text += fmt::format("{},{},{},{}\n", age, bmi, smokes, stream.below(2));
    all.push_back({age, bmi, smokes ? 1.0 : 0.0});
  }
  return text;
}

TableSums sums_of(const std::filesystem::path& file, double noise = 0, std::uint64_t seed = 1) {
  const auto bounds = parse_bounds("age=0:120,bmi, now=10:60");
  TableSums sums =
      sum_table(file.string(), bounds, {.noise_multiplier = noise, .test_seed = seed}).sums;
  sums.source = file.filename();
  sums.digest = file.filename();
  return sums;
}

double mean_of(const std::vector<std::vector<double>>& rows, std::size_t column) {
  double sum = 0;
  for (const auto& row : rows) {
    sum += row[column];
  }
  return sum / static_cast<double>(rows.size());
}

double deviation_of(const std::vector<std::vector<double>>& rows, std::size_t column) {
  const double mean = mean_of(rows, column);
  double squares = 0;
  for (const auto& row : rows) {
    squares += (row[column] - mean) * (row[column] - mean);
  }
  return std::sqrt(squares / static_cast<double>(rows.size()));
}

}  // namespace

TEST_CASE("the scaling of three tables is the mean and the deviation of all their rows") {
  INFO("seed " << kSeed);
  const Scratch scratch;
  std::vector<std::vector<double>> rows;
  std::vector<TableSums> sums;
  for (std::uint32_t site = 0; site < 3; ++site) {
    const auto file =
        scratch.write(fmt::format("{}.csv", site), table_of(site, 100 + 150 * site, rows));
    sums.push_back(sums_of(file));
    CHECK(sums.back().rows == 100 + 150 * site);
  }
  const auto [scaling, count, warnings] = combine_sums(sums);
  CHECK(count == static_cast<double>(rows.size()));
  CHECK(warnings.empty());
  CHECK(scaling.targets.empty());
  REQUIRE(scaling.columns.size() == 3);
  CHECK(scaling.columns[1].name == "bmi, now");
  for (std::size_t k = 0; k < 3; ++k) {
    CHECK(scaling.columns[k].mean == doctest::Approx(mean_of(rows, k)).epsilon(1e-7));
    CHECK(scaling.columns[k].deviation == doctest::Approx(deviation_of(rows, k)).epsilon(1e-6));
  }
  // Any of the tables is scaled by it, and by nothing of its own.
  const auto task = load_task("csv:" + (scratch.path() / "1.csv").string(), &scaling);
  REQUIRE(task->dataset->scaling().size() == 3);
  CHECK(task->dataset->scaling()[0].mean == scaling.columns[0].mean);
  CHECK(task->scaling == scaling_digest(scaling));
  auto other = scaling;
  other.columns[2].mean += 1e-9;
  CHECK(scaling_digest(other) != task->scaling);
}

TEST_CASE("noise moves a scaling by what it may, and a variance that it hides is named") {
  const Scratch scratch;
  std::vector<std::vector<double>> rows;
  const auto file = scratch.write("a.csv", table_of(0, 4000, rows));
  constexpr double kNoise = 4;
  const double off = kNoise * std::sqrt(7.0) / 4000;  // of half of the bounds' distance
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    const auto sums = sums_of(file, kNoise, seed);
    const auto [scaling, count, warnings] = combine_sums({&sums, 1});
    CHECK(std::abs(scaling.columns[0].mean - mean_of(rows, 0)) < 5 * 60 * off);
    CHECK(scaling.columns[0].deviation == doctest::Approx(deviation_of(rows, 0)).epsilon(0.25));
    CHECK(scaling.sites.front().noise_multiplier == kNoise);
  }
  auto sums = sums_of(file, kNoise, 1);
  sums.columns[0].sum = 0;
  sums.columns[0].squares = -3;  // as strong noise leaves it
  const auto [scaling, count, warnings] = combine_sums({&sums, 1});
  CHECK(scaling.columns[0].deviation ==
        doctest::Approx(60 * std::sqrt(kNoise * std::sqrt(7.0) / sums.rows)));
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "'age': its variance is -"));
  sums.rows = -2;
  CHECK(contains(refusal([&] { (void)combine_sums({&sums, 1}); }), "hides that there are any"));
}

TEST_CASE("a column that is the same everywhere is only shifted, and said") {
  const Scratch scratch;
  const auto file = scratch.write("a.csv", "age,label\n40,0\n40,1\n40,1\n");
  auto sums = sum_table(file.string(), parse_bounds("age=0:120"), {}).sums;
  const auto [scaling, count, warnings] = combine_sums({&sums, 1});
  CHECK(scaling.columns[0].mean == doctest::Approx(40));
  CHECK(scaling.columns[0].deviation == 1);
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "is the same in all rows"));
}

TEST_CASE("values outside of their bounds are clipped and counted, and targets are summed too") {
  const Scratch scratch;
  const auto file =
      scratch.write("a.csv", "area;price;late\n10;100,5;true\n20;300;false\n99;-5;true\n");
  const std::string task = "csv:" + file.string() + ",target=price,regression";
  const auto summed = sum_table(task, parse_bounds("area=0:50,price=0:200"), {});
  CHECK(summed.rows == 3);
  CHECK(summed.clipped == std::vector<std::size_t>{1, 0, 2});
  REQUIRE(summed.sums.columns.size() == 3);
  CHECK(summed.sums.columns[2].target);
  CHECK(summed.sums.columns[1].name == "late");
  const SharedScaling scaling = combine_sums({&summed.sums, 1}).scaling;
  CHECK(scaling.columns[0].mean == doctest::Approx((10 + 20 + 50) / 3.0));
  CHECK(scaling.targets[0].mean == doctest::Approx((100.5 + 200 + 0) / 3.0));
  const auto data = load_task(task, &scaling)->dataset;
  CHECK(data->target_scaling()[0].mean == scaling.targets[0].mean);
  CHECK(contains(refusal([&] { load_task("csv:" + file.string() + ",target=late", &scaling); }),
                 "feature 2 is 'late' there, and 'price' in the table"));
}

TEST_CASE("sums that do not fit together are refused, with what differs") {
  const Scratch scratch;
  std::vector<std::vector<double>> rows;
  const auto a = sums_of(scratch.write("a.csv", table_of(0, 20, rows)));
  const auto refused = [&](auto change) {
    auto b = a;
    b.source = b.digest = "b.toml";
    change(b);
    return refusal([&] { (void)combine_sums(std::vector{a, b}); });
  };
  CHECK(contains(refused([](TableSums& b) { b.columns.pop_back(); }), "sums of 2 columns"));
  CHECK(
      contains(refused([](TableSums& b) { b.columns[0].name = "Age"; }), "'Age', and it is 'age'"));
  CHECK(contains(refused([](TableSums& b) { std::swap(b.columns[0], b.columns[1]); }), "column 1"));
  CHECK(contains(refused([](TableSums& b) { b.columns[0].largest = 100; }), "bounds 0:100"));
  CHECK(contains(refused([](TableSums& b) { b.columns[2].target = true; }), "is a target there"));
  CHECK(contains(refused([](TableSums& b) { b.digest = "a.csv"; }), "are the sums of a.csv"));
  CHECK(contains(refused([](TableSums& b) { b.columns[1].sum = 21; }), "of no table"));
  CHECK(contains(refused([](TableSums& b) { b.columns[1].squares = -1; }), "of no table"));
  CHECK(contains(refusal([] { (void)combine_sums({}); }), "one site"));
}

TEST_CASE("bounds: what is taken, and what is refused") {
  const auto bounds = parse_bounds("age=0:120, size, m=-1:1.5,a=b:c=2:3");
  REQUIRE(bounds.size() == 3);
  CHECK(bounds[1].column == "size, m");
  CHECK(bounds[1].least == -1);
  CHECK(bounds[1].largest == 1.5);
  CHECK(bounds[2].column == "a=b:c");
  CHECK(parse_bounds("").empty());
  for (const char* wrong : {"age", "age=1", "age=1:", "=1:2", "age=2:1", "age=1:1", "age=0:inf",
                            "age=-1e308:1e308", "age=0:1,age=0:2", "age=0:1,", "age=0:1,bmi"}) {
    CAPTURE(wrong);
    if (std::string_view(wrong) == "age=0:1,") {
      CHECK(parse_bounds(wrong).size() == 1);
    } else {
      CHECK(contains(refusal([&] { (void)parse_bounds(wrong); }), "bounds"));
    }
  }
  const Scratch scratch;
  const auto file = scratch.write("a.csv", "age,bmi,label\n40,20,0\n41,22,1\n");
  const auto said = [&](const char* list) {
    return refusal([&] { (void)sum_table(file.string(), parse_bounds(list), {}); });
  };
  CHECK(contains(said("age=0:120"), "'bmi' lack them"));
  CHECK(contains(said("age=0:120,bmj=1:2,bmi=1:2"), "did you mean bmi?"));
  CHECK(contains(refusal([&] { (void)sum_table("digits", {}, {}); }), "digits"));
}

TEST_CASE("only tables are scaled by several sites") {
  const SharedScaling scaling{.source = "scaling.toml", .columns = {{.name = "a"}}};
  CHECK(contains(refusal([&] { load_task("digits", &scaling); }), "columns of a table"));
}

}  // namespace sotto::test::shared_scaling_test
