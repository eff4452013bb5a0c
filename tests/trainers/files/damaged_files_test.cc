// Whatever is done to a file, its loader gives a data set or an Error: never a crash, a hang or a
// NaN. The damage is a function of the seed, so that a failure can be run again.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/trainers/data/loaders.h>
#include <sotto/trainers/tasks/quadratic.h>

#include "support/scratch.h"
#include "trainers/gzip.h"

namespace sotto::test::damaged_files_test {

namespace {

constexpr std::uint64_t kSeed = 20240607;
constexpr std::uint32_t kVariants = 400;

/// One to four random edits: a byte set, a run removed, doubled, or replaced by a hostile word.
std::string damaged(std::string content, RandomStream& stream) {
  static const std::vector<std::string> words = {
      "nan", "-inf", "1e999", "\"", ",", ":", "\n", "[", "{}", "99999999999999999999", "-", "#"};
  const std::uint64_t edits = 1 + stream.below(4);
  for (std::uint64_t edit = 0; edit < edits; ++edit) {
    const std::size_t at = stream.below(content.size() + 1);
    const std::size_t run = std::min<std::size_t>(stream.below(12), content.size() - at);
    switch (stream.below(4)) {
      case 0:
        if (at < content.size()) {
          content[at] = static_cast<char>(stream.below(256));
        }
        break;
      case 1:
        content.erase(at, run);
        break;
      case 2:
        content.insert(at, content.substr(at, run));
        break;
      default:
        content.replace(at, run, words[stream.below(words.size())]);
    }
  }
  return content;
}

void require_sound(const Dataset& data) {
  for (const Examples* part : {&data.train(), &data.test()}) {
    std::vector<float> row(data.features());
    for (std::size_t i = 0; i < part->size(); ++i) {
      part->copy_row(i, row);
      REQUIRE(
          std::all_of(row.begin(), row.end(), [](float value) { return std::isfinite(value); }));
      REQUIRE(part->labels()[i] >= 0);
      REQUIRE(part->labels()[i] < data.classes());
    }
  }
}

/// Loads `kVariants` damaged copies of `content`; some must be refused, and some may do.
void attack(const test::Scratch& scratch, std::string_view name, const std::string& content,
            const std::function<void()>& load) {
  int refused = 0;
  for (std::uint32_t variant = 0; variant < kVariants; ++variant) {
    INFO("file ", name, ", seed ", kSeed, ", variant ", variant);
    RandomStream stream({.seed = kSeed, .round = variant, .purpose = Purpose::test});
    scratch.write(name, damaged(content, stream));
    try {
      load();
    } catch (const Error& error) {
      ++refused;
      CHECK(test::contains(error.what(), scratch.path().string()));
    }
  }
  CHECK(refused > 0);
  scratch.write(name, content);
  CHECK_NOTHROW(load());
}

}  // namespace

TEST_CASE("damaged tables, sparse rows, texts and problems are refused or read") {
  const test::Scratch scratch;
  std::string table = "\"a\",\"b\",\"kind\"\n";
  std::string sparse;
  std::string text;
  for (int i = 0; i < 12; ++i) {
    table += fmt::format("{},\"{}\",{}\n", 0.5 * i, 100 - i, i % 2);
    sparse += fmt::format("{} {}:1 {}:-0.25\n", i % 3, 1 + i % 4, 6 + i % 5);
    text += "a rule and a text ";
  }
  attack(scratch, "table.csv", table,
         [&] { require_sound(*load_csv(scratch.path() / "table.csv")); });
  attack(scratch, "rows.svm", sparse,
         [&] { require_sound(*load_libsvm(scratch.path() / "rows.svm")); });
  attack(scratch, "text.txt", text, [&] {
    // No byte is wrong in a text; it can only be too short.
    require_sound(*load_text(scratch.path() / "text.txt", 20));
  });
  attack(scratch, "problem.json",
         R"({"start": [1, 2], "nodes": [{"h": [1, 0.5], "c": [3e0, -4]}]})", [&] {
           const auto problem = load_quadratic(scratch.path() / "problem.json");
           REQUIRE(std::isfinite(problem->start[0]));
         });
}

TEST_CASE("damaged IDX files, packed and not, are refused or read") {
  const std::string images =
      std::string("\0\0\x08\x03\0\0\0\x05\0\0\0\x02\0\0\0\x02", 16) + std::string(20, '\x7F');
  const std::string labels = std::string("\0\0\x08\x01\0\0\0\x05\0\x01\x02\x03\x04", 13);
  const test::Scratch plain;
  plain.write("t10k-labels-idx1-ubyte", labels);
  attack(plain, "t10k-images-idx3-ubyte", images,
         [&] { require_sound(*load_mnist(plain.path())); });
  attack(plain, "t10k-labels-idx1-ubyte", labels,
         [&] { require_sound(*load_mnist(plain.path())); });
  const test::Scratch packed;
  packed.write("t10k-labels-idx1-ubyte", labels);
  attack(packed, "t10k-images-idx3-ubyte.gz", test::gzip(images),
         [&] { require_sound(*load_mnist(packed.path())); });
}

}  // namespace sotto::test::damaged_files_test
