// Images in IDX files beyond MNIST's: EMNIST's names and labels, other types of numbers, other
// sizes.
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/trainers/data/loaders.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "support/scratch.h"
#include "trainers/gzip.h"

namespace sotto::test::idx_test {

using test::contains;

namespace {

std::string bytes_of(std::uint64_t value, int count) {
  std::string bytes;
  for (int shift = 8 * (count - 1); shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(value >> static_cast<unsigned>(shift) & 0xFFU));
  }
  return bytes;
}

/// Labels first, first + 1, …, first + classes − 1, first, ….
std::string labels(std::uint32_t count, std::uint32_t first, std::uint32_t classes) {
  std::string bytes = bytes_of(0x801, 4) + bytes_of(count, 4);
  for (std::uint32_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<char>(first + i % classes));
  }
  return bytes;
}

/// Images of 1 × 2 numbers, each in its big-endian bytes.
std::string images(std::uint32_t type, const std::vector<std::string>& numbers) {
  std::string bytes = bytes_of(type << 8U | 3U, 4) +
                      bytes_of(static_cast<std::uint64_t>(numbers.size() / 2), 4) + bytes_of(1, 4) +
                      bytes_of(2, 4);
  for (const std::string& number : numbers) {
    bytes += number;
  }
  return bytes;
}

std::string plain_images(std::uint32_t count) {
  return images(0x08, std::vector<std::string>(2 * std::size_t{count}, "\x33"));
}

std::vector<float> first_row(const Dataset& data) {
  std::vector<float> row(data.features());
  data.train().copy_row(0, row);
  return row;
}

}  // namespace

TEST_CASE("EMNIST's letters are read under their names, with labels from 1") {
  const test::Scratch scratch;
  scratch.write("emnist-letters-train-images-idx3-ubyte.gz", test::gzip(plain_images(52)));
  scratch.write("emnist-letters-train-labels-idx1-ubyte.gz", test::gzip(labels(52, 1, 26)));
  scratch.write("emnist-letters-test-images-idx3-ubyte", plain_images(26));
  scratch.write("emnist-letters-test-labels-idx1-ubyte", labels(26, 1, 26));
  const auto data = load_task("mnist:" + scratch.path().string())->dataset;
  CHECK(data->classes() == 26);
  CHECK(data->train().size() == 52);
  CHECK(data->test().size() == 26);
  CHECK(data->train().labels()[25] == 25);
  CHECK(data->names().classes.front() == "A");
  CHECK(data->image()->width == 2);

  scratch.write("emnist-letters-test-labels-idx1-ubyte", labels(26, 0, 26));
  CHECK(contains(test::refusal([&] { load_mnist(scratch.path()); }),
                 "byte 8: a label from 1 to 26 is expected; found 0"));
}

TEST_CASE("one of several data sets in a folder is named") {
  const test::Scratch scratch;
  for (const std::string set : {"emnist-letters", "emnist-byclass"}) {
    scratch.write(set + "-train-images-idx3-ubyte", plain_images(70));
    scratch.write(set + "-train-labels-idx1-ubyte", labels(70, 1, 26));
  }
  const std::string spec = "mnist:" + scratch.path().string();
  CHECK(contains(test::refusal([&] { load_task(spec); }), spec + ",set=emnist-letters"));
  CHECK(load_task(spec + ",set=letters")->dataset->classes() == 26);
  CHECK(load_task(spec + ",set=emnist-byclass")->dataset->classes() == 62);
  CHECK(contains(test::refusal([&] { load_task(spec + ",set=kanji"); }), "there are emnist-"));
}

TEST_CASE("digits that the training or the test images never show are warned of") {
  const test::Scratch scratch;
  scratch.write("train-images-idx3-ubyte", plain_images(27));
  scratch.write("train-labels-idx1-ubyte", labels(27, 0, 9));
  scratch.write("t10k-images-idx3-ubyte", plain_images(20));
  scratch.write("t10k-labels-idx1-ubyte", labels(20, 0, 10));
  auto warnings = load_mnist(scratch.path())->warnings();
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "1 of 10 classes are in the test set alone, and cannot be learned"));
  scratch.write("t10k-labels-idx1-ubyte", labels(20, 2, 5));
  warnings = load_mnist(scratch.path())->warnings();
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "4 of 10 classes are in the training set alone"));
}

TEST_CASE("two files for one thing in a folder are both named, unless one is the other packed") {
  const test::Scratch scratch;
  scratch.write("train-images-idx3-ubyte", plain_images(20));
  scratch.write("train-labels-idx1-ubyte", labels(20, 0, 10));
  scratch.write("t10k-images-idx3-ubyte", plain_images(10));
  scratch.write("t10k-labels-idx1-ubyte", labels(10, 0, 10));
  scratch.write("t10k-labels-idx1-ubyte.gz", test::gzip(labels(10, 0, 10)));
  CHECK(load_mnist(scratch.path())->test().size() == 10);
  scratch.write("test-labels.idx1-ubyte", labels(10, 1, 9));
  const auto text = test::refusal([&] { load_mnist(scratch.path()); });
  CAPTURE(text);
  CHECK(contains(text, "test-labels.idx1-ubyte"));
  CHECK(contains(text, "t10k-labels-idx1-ubyte is there for the same"));
}

TEST_CASE("names with a dot are read, and so are sets of other names") {
  const test::Scratch scratch;
  scratch.write("train-images.idx3-ubyte", plain_images(20));
  scratch.write("train-labels.idx1-ubyte", labels(20, 0, 10));
  scratch.write("t10k-images.idx3-ubyte", plain_images(10));
  CHECK(contains(test::refusal([&] { load_mnist(scratch.path()); }), "t10k-labels.idx1-ubyte"));
  scratch.write("t10k-labels.idx1-ubyte", labels(10, 0, 10));
  CHECK(load_mnist(scratch.path())->test().size() == 10);

  const test::Scratch other;
  other.write("runes-train-images-idx3-ubyte", plain_images(30));
  other.write("runes-train-labels-idx1-ubyte", labels(30, 0, 15));
  CHECK(load_mnist(other.path())->classes() == 15);
}

TEST_CASE("every type of number becomes pixels from 0 to 1, or stays as it is scaled") {
  const auto f32 = [](float value) { return bytes_of(std::bit_cast<std::uint32_t>(value), 4); };
  const auto f64 = [](double value) { return bytes_of(std::bit_cast<std::uint64_t>(value), 8); };
  const auto load = [](std::uint32_t type, const std::string& a, const std::string& b) {
    const test::Scratch scratch;
    std::vector<std::string> numbers;
    for (int i = 0; i < 20; ++i) {
      numbers.insert(numbers.end(), {a, b});
    }
    scratch.write("train-images-idx3-ubyte", images(type, numbers));
    scratch.write("train-labels-idx1-ubyte", labels(20, 0, 10));
    return first_row(*load_mnist(scratch.path()));
  };
  using Rows = std::vector<float>;
  CHECK(load(0x09, "\x33", std::string(1, '\0')) == Rows{0.2F, 0});
  CHECK(load(0x0B, bytes_of(255, 2), bytes_of(51, 2)) == Rows{1, 0.2F});
  CHECK(load(0x0C, bytes_of(0, 4), bytes_of(255, 4)) == Rows{0, 1});
  CHECK(load(0x0D, f32(0.25F), f32(1)) == Rows{0.25F, 1});
  CHECK(load(0x0D, f32(-0.42F), f32(2.8F)) == Rows{-0.42F, 2.8F});
  CHECK(load(0x0E, f64(51), f64(255)) == Rows{0.2F, 1});
  for (const auto& [type, number] :
       {std::pair(0x0CU, bytes_of(70'000, 4)), std::pair(0x0BU, bytes_of(0xFFFF, 2)),
        std::pair(0x0DU, f32(std::numeric_limits<float>::quiet_NaN()))}) {
    CHECK(test::refusal([&] { load(type, number, number); }).find("expected") != std::string::npos);
  }
  CHECK(contains(test::refusal([&] { load(0x0A, "a", "b"); }), "byte 0"));
}

}  // namespace sotto::test::idx_test
