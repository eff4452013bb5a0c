#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/trainers/data/loaders.h>
#include <sotto/trainers/data/partition.h>
#include <sotto/trainers/data/sampler.h>
#include <sotto/trainers/tasks/model.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "support/scratch.h"
#include "support/skip.h"

namespace sotto::test::text_test {

using test::contains;

TEST_CASE("windows are one-hot, and the label is the next character") {
  const test::Scratch scratch;
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text += "abc"[i % 3];
  }
  const auto file = scratch.write("text.txt", text);
  const auto data = load_task("text:" + file.string() + ",context=2")->dataset;
  CHECK(data->classes() == 3);
  CHECK(data->features() == 6);
  CHECK(data->train().size() == 90 - 2);
  CHECK(data->test().size() == 10 - 2);
  std::vector<float> row(6);
  data->train().copy_row(1, row);
  CHECK(row == std::vector<float>{0, 1, 0, 0, 0, 1});  // "bc"
  CHECK(data->train().labels()[1] == 0);               // "a"
  data->test().copy_row(7, row);                       // places 97 and 98 of the text
  CHECK(row == std::vector<float>{0, 1, 0, 0, 0, 1});
  CHECK(data->test().labels()[7] == 0);
}

TEST_CASE("a text with a rule is learned") {
  const test::Scratch scratch;
  std::string text;
  while (text.size() < 4000) {
    text += "to be or not to be, that is the question. ";
  }
  const auto data = load_task("text:" + scratch.write("text.txt", text).string());
  const TaskFactory tasks(data, {});
  CHECK(tasks.options().model == "mlp:128");
  const auto task = tasks.make(0);
  std::vector<float> x(task->dimension());
  std::vector<float> gradient(x.size());
  task->initialize(x, 0);
  for (Round round = 0; round < 400; ++round) {
    task->loss_and_gradient(round, x, gradient);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] -= 0.3F * gradient[i];
    }
  }
  CHECK(task->evaluate(x).accuracy > 0.99);
}

TEST_CASE("what follows each position of a window is its label, from the last one backwards") {
  const test::Scratch scratch;
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text += "abcd"[i % 4];
  }
  const auto data = load_text(scratch.write("text.txt", text), 3);
  REQUIRE(data->sequence().has_value());
  CHECK(data->sequence()->positions == 3);
  CHECK(data->sequence()->symbols == 4);
  for (const std::size_t count : {1UL, 2UL, 3UL}) {
    std::vector<std::int32_t> labels(count);
    data->train().copy_labels(5, labels);  // "bcd"
    const std::vector<std::int32_t> all{2, 3, 0};
    CHECK(labels ==
          std::vector<std::int32_t>(all.end() - static_cast<std::ptrdiff_t>(count), all.end()));
    data->test().copy_labels(2, labels);  // places 92 … 94, "abc"
    CHECK(labels.back() == 3);
  }
}

TEST_CASE("a transformer is trained and tested at all positions of a window") {
  const test::Scratch scratch;
  std::string text;
  while (text.size() < 2000) {
    text += "to be or not to be, that is the question. ";
  }
  const auto data = load_task("text:" + scratch.write("text.txt", text).string() + ",context=4");
  const TaskFactory tasks(data, {.model = "transformer:1,8,2", .batch = 10, .nodes = 3});
  const auto task = tasks.make(1);
  const std::size_t examples = data->dataset->train().size();
  CHECK(task->rounds_per_epoch() == (examples + 119) / 120);  // 10 examples, 4 positions, 3 nodes
  std::vector<float> x(task->dimension());
  std::vector<float> gradient(x.size());
  task->initialize(x, 0);
  const double loss = task->loss_and_gradient(2, x, gradient);

  // These scores, and every label by itself.
  const auto model = make_model("transformer:1,8,2",
                                {.features = data->dataset->features(),
                                 .classes = static_cast<std::size_t>(data->dataset->classes()),
                                 .sequence = data->dataset->sequence()});
  const auto mean_loss = [&](const Examples& from, std::span<const std::uint32_t> rows) {
    const auto classes = static_cast<std::size_t>(data->dataset->classes());
    std::vector<float> features(data->dataset->features());
    std::vector<std::int32_t> labels(4);
    double sum = 0;
    for (const std::uint32_t row : rows) {
      from.copy_row(row, features);
      from.copy_labels(row, labels);
      const auto scores = model->forward(x, features, 1);
      for (std::size_t position = 0; position < 4; ++position) {
        const auto at = scores.subspan(position * classes, classes);
        double total = 0;
        for (const float score : at) {
          total += std::exp(static_cast<double>(score));
        }
        sum +=
            std::log(total) - static_cast<double>(at[static_cast<std::size_t>(labels[position])]);
      }
    }
    return sum / static_cast<double>(4 * rows.size());
  };
  const auto shards = partition_examples(data->dataset->train().labels(), data->dataset->classes(),
                                         3, parse_partition("iid"), 0);
  Sampler sampler(shards[1], 10, 0, 1);
  CHECK(loss == doctest::Approx(mean_loss(data->dataset->train(), sampler.batch(2))));
  std::vector<std::uint32_t> tested;
  for (std::uint32_t row = 0; row < data->dataset->test().size(); row += 4) {
    tested.push_back(row);
  }
  CHECK(task->evaluate(x).loss == doctest::Approx(mean_loss(data->dataset->test(), tested)));
}

TEST_CASE("a batch that would not fit the memory is refused with what would") {
  const test::Scratch scratch;
  const auto file = scratch.write("ab.txt", std::string(4000, 'a') + std::string(4000, 'b'));
  const auto data = load_task("text:" + file.string() + ",context=256");
  const auto told = [&](const std::string& model, std::size_t batch) {
    return test::refusal([&] { TaskFactory(data, {.model = model, .batch = batch}); });
  };
  CHECK(contains(told("transformer", 10000), "expected 1 … "));
  CHECK(contains(told("transformer:16,2048,2048", 1), "smaller model or context"));
  CHECK_NOTHROW(TaskFactory(data, {.model = "transformer", .batch = 500}));
}

TEST_CASE("texts that are too short or all alike, and contexts out of range, are refused") {
  const test::Scratch scratch;
  const auto short_text = scratch.write("short.txt", std::string(88, 'a') + "b");
  CHECK(contains(test::refusal([&] { load_text(short_text); }), "at least 90"));
  CHECK(load_text(scratch.write("enough.txt", std::string(99, 'a') + "b"), 9)->test().size() == 1);
  CHECK(contains(test::refusal([&] { load_text(scratch.write("a.txt", std::string(500, 'a'))); }),
                 "two"));
  CHECK_THROWS_AS(load_text(scratch.write("empty.txt", "")), Error);
  const auto file = scratch.write("long.txt", std::string(5000, 'a') + std::string(5000, 'b'));
  CHECK(contains(test::refusal([&] { load_text(file, 0); }), "context=0"));
  CHECK(contains(test::refusal([&] { load_text(file, 257); }), "context=257"));
}

TEST_CASE("Shakespeare's next characters: the test set is bounded and the vocabulary found") {
  const auto folder = test::real_data();
  if (!folder) {
    SOTTO_SKIP("SOTTO_DATA is not set");
  }
  const auto data = load_text(*folder / "shakespeare" / "input.txt");
  CHECK(data->classes() == 65);
  CHECK(data->features() == 8 * 65);
  CHECK(data->train().size() > 1'000'000);
  CHECK(data->test().size() <= 4096);
  CHECK(data->test().size() > 3000);
}

}  // namespace sotto::test::text_test
