#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/trainers/loaders.h>
#include <sotto/trainers/task_registry.h>

#include "scratch.h"
#include "support/skip.h"

using namespace sotto;
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
