#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/trainers/data/loaders.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "support/scratch.h"
#include "support/skip.h"
#include "trainers/gzip.h"

namespace sotto::test::mnist_test {

using test::contains;

namespace {

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(value >> shift & 0xFFU));
  }
  return bytes;
}

constexpr std::uint32_t kHeight = 2;
constexpr std::uint32_t kWidth = 3;

/// Image i holds the bytes 6 i, 6 i + 1, …; label i is i mod 10.
std::string images(std::uint32_t count) {
  std::string bytes =
      big_endian(0x803) + big_endian(count) + big_endian(kHeight) + big_endian(kWidth);
  for (std::uint32_t i = 0; i < count * kHeight * kWidth; ++i) {
    bytes.push_back(static_cast<char>(i & 0xFFU));
  }
  return bytes;
}

std::string labels(std::uint32_t count) {
  std::string bytes = big_endian(0x801) + big_endian(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<char>(i % 10));
  }
  return bytes;
}

constexpr const char* kImages = "t10k-images-idx3-ubyte";
constexpr const char* kLabels = "t10k-labels-idx1-ubyte";

/// What load_mnist says of these two files.
std::string refusal_of(const std::string& image_bytes, const std::string& label_bytes,
                       const std::string& suffix = "") {
  const test::Scratch scratch;
  scratch.write(kImages + suffix, image_bytes);
  scratch.write(kLabels + suffix, label_bytes);
  return test::refusal([&] { load_mnist(scratch.path()); });
}

}  // namespace

TEST_CASE("one pair of files is cut into 80 % and 20 %, in order, scaled to 0 … 1") {
  const test::Scratch plain;
  plain.write(kImages, images(20));
  plain.write(kLabels, labels(20));
  const test::Scratch packed;
  packed.write(std::string(kImages) + ".gz", test::gzip(images(20)));
  packed.write(std::string(kLabels) + ".gz", test::gzip(labels(20)));
  for (const auto* folder : {&plain, &packed}) {
    const auto data = load_mnist(folder->path());
    REQUIRE(data->train().size() == 16);
    REQUIRE(data->test().size() == 4);
    CHECK(data->classes() == 10);
    REQUIRE(data->image());
    CHECK(data->image()->height == kHeight);
    CHECK(data->image()->width == kWidth);
    std::vector<float> row(kHeight * kWidth);
    data->train().copy_row(1, row);
    CHECK(row ==
          std::vector<float>{6 / 255.F, 7 / 255.F, 8 / 255.F, 9 / 255.F, 10 / 255.F, 11 / 255.F});
    CHECK(data->train().labels()[15] == 5);
    data->test().copy_row(0, row);
    CHECK(row[0] == 96 / 255.F);
    CHECK(data->test().labels()[0] == 6);
  }
}

TEST_CASE("with both pairs, one trains and the other tests") {
  const test::Scratch scratch;
  scratch.write("train-images-idx3-ubyte", images(7));
  scratch.write("train-labels-idx1-ubyte.gz", test::gzip(labels(7)));
  scratch.write(kImages, images(3));
  scratch.write(kLabels, labels(3));
  const auto data = load_mnist(scratch.path());
  CHECK(data->train().size() == 7);
  CHECK(data->test().size() == 3);
}

TEST_CASE("files that are missing are named") {
  const test::Scratch scratch;
  CHECK(contains(test::refusal([&] { load_mnist(scratch.path()); }), "train-images-idx3-ubyte"));
  const auto nowhere = test::refusal([&] { load_mnist(scratch.path() / "nowhere"); });
  CHECK(
      contains(nowhere, "nowhere: there is no such folder; expected are train-images-idx3-ubyte"));
  const auto file = scratch.write("file", "");
  CHECK(contains(test::refusal([&] { load_mnist(file); }), "a folder is needed"));
  CHECK(contains(test::refusal([&] { load_occupancy(scratch.path() / "nowhere"); }),
                 "no such folder; expected are datatraining.txt"));
  scratch.write(kImages, images(3));
  CHECK(contains(test::refusal([&] { load_mnist(scratch.path()); }), kLabels));
  std::filesystem::create_directory(scratch.path() / kLabels);
  CHECK(contains(test::refusal([&] { load_mnist(scratch.path()); }), "it is a folder"));
}

TEST_CASE("every truncation and any trailing byte is refused") {
  const std::string image_bytes = images(5);
  const std::string label_bytes = labels(5);
  for (std::size_t length = 0; length < image_bytes.size(); ++length) {
    CAPTURE(length);
    CHECK(contains(refusal_of(image_bytes.substr(0, length), label_bytes), kImages));
  }
  for (std::size_t length = 0; length < label_bytes.size(); ++length) {
    CAPTURE(length);
    CHECK(contains(refusal_of(image_bytes, label_bytes.substr(0, length)), kLabels));
  }
  CHECK(contains(refusal_of(image_bytes + "x", label_bytes), "byte 46"));
  CHECK(contains(refusal_of(image_bytes, label_bytes + "x"), "byte 13"));
}

TEST_CASE("every truncation and every flipped byte of a gzip stream is refused or harmless") {
  const std::string packed = test::gzip(images(5));
  const std::string label_bytes = test::gzip(labels(5));
  for (std::size_t length = 0; length < packed.size(); ++length) {
    CAPTURE(length);
    CHECK(contains(refusal_of(packed.substr(0, length), label_bytes, ".gz"), kImages));
  }
  for (std::size_t at = 0; at < packed.size(); ++at) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    const test::Scratch scratch;
    scratch.write(std::string(kImages) + ".gz", damaged);
    scratch.write(std::string(kLabels) + ".gz", label_bytes);
    try {
      // The time stamp and such in gzip's header do not matter; the pixels are guarded by its CRC.
      const auto data = load_mnist(scratch.path());
      CHECK(data->features() == kHeight * kWidth);
      std::vector<float> row(data->features());
      data->train().copy_row(3, row);
      CHECK(row[0] == 18 / 255.F);
    } catch (const Error& error) {
      CHECK(contains(error.what(), kImages));
    }
  }
}

TEST_CASE("whatever follows the data in a gzip file is refused, packed or not") {
  const std::string packed = test::gzip(images(5));
  const std::string label_bytes = test::gzip(labels(5));
  for (const std::string& more :
       {std::string("x"), std::string(1, '\0'), std::string(100'000, '\0'), label_bytes}) {
    CHECK(contains(refusal_of(packed + more, label_bytes, ".gz"),
                   fmt::format("{}.gz: byte {}: the file goes on", kImages, packed.size())));
    CHECK(contains(refusal_of(packed, label_bytes + more, ".gz"),
                   fmt::format("{}.gz: byte {}: the file goes on", kLabels, label_bytes.size())));
  }
  CHECK(contains(refusal_of(test::gzip(images(5) + "x"), label_bytes, ".gz"),
                 "byte 46: the file goes on behind the 5"));
}

TEST_CASE("bad input: shape products that overflow, and headers that lie, before allocation") {
  const std::string good = labels(5);
  const auto header = [](std::uint32_t magic, std::uint32_t n, std::uint32_t h, std::uint32_t w) {
    return big_endian(magic) + big_endian(n) + big_endian(h) + big_endian(w) + "pixels";
  };
  CHECK(contains(refusal_of(header(0x801, 5, 2, 3), good), "00000803"));
  CHECK(contains(refusal_of(header(0x08030000, 5, 2, 3), good), "byte 0"));
  CHECK(contains(refusal_of(header(0x803, 0, 2, 3), good), "byte 4"));
  CHECK(contains(refusal_of(header(0x803, 5, 0, 3), good), "byte 8"));
  CHECK(contains(refusal_of(header(0x803, 5, 2, 0), good), "byte 12"));
  const std::uint32_t most = 0xFFFFFFFF;
  CHECK(contains(refusal_of(header(0x803, most, most, most), good), "limit"));
  CHECK(contains(refusal_of(header(0x803, 1 << 30, 1, 1), good), "too small"));
  CHECK(contains(refusal_of(test::gzip(header(0x803, 1 << 30, 1, 1)), test::gzip(good), ".gz"),
                 "too small"));
  CHECK(
      contains(refusal_of(test::gzip(std::string(5000, '\0')), test::gzip(good), ".gz"), "magic"));
}

TEST_CASE("bad input: counts that differ or exceed the limit are refused before unpacking") {
  // Packed streams that are damaged behind their headers: whoever unpacks them says so instead.
  const auto damaged = [](const std::string& content) {
    std::string packed = test::gzip(content + std::string(100'000, '\0'));
    packed[packed.size() - 6] = static_cast<char>(packed[packed.size() - 6] ^ 1);
    return packed;
  };
  const auto image_header = [](std::uint32_t count) {
    return big_endian(0x803) + big_endian(count) + big_endian(1) + big_endian(1);
  };
  const auto label_header = [](std::uint32_t count) {
    return big_endian(0x801) + big_endian(count);
  };
  CHECK(contains(refusal_of(damaged(image_header(100'000)), damaged(label_header(99'999)), ".gz"),
                 "99999 labels, but"));
  // The largest count that there may be, in so few bytes that only the count can tell.
  const std::uint32_t many = (1U << 24U) + 1;
  const std::string zeros(many, '\0');
  CHECK(contains(refusal_of(test::gzip(image_header(many) + zeros),
                            test::gzip(label_header(many) + zeros), ".gz"),
                 "16777216 is the limit"));
}

TEST_CASE("images without labels and labels out of range are refused") {
  CHECK(contains(refusal_of(images(5), labels(6)), "6 labels"));
  std::string bad = labels(5);
  bad[10] = 10;
  const std::string message = refusal_of(images(5), bad);
  CHECK(contains(message, "byte 10"));
  CHECK(contains(message, "found 10"));
  CHECK(contains(refusal_of(images(1), labels(1)), "empty"));
}

TEST_CASE("the 10,000 images of MNIST's test set train a good classifier") {
  const auto folder = test::real_data();
  if (!folder) {
    SOTTO_SKIP("SOTTO_DATA is not set");
  }
  const auto data = load_task("mnist:" + (*folder / "mnist").string());
  CHECK(data->dataset->train().size() == 8000);
  CHECK(data->dataset->test().size() == 2000);
  CHECK(data->dataset->features() == 784);
  const TaskFactory tasks(data, {.model = "mlp:32"});
  const auto task = tasks.make(0);
  std::vector<float> x(task->dimension());
  std::vector<float> gradient(x.size());
  task->initialize(x, 0);
  for (Round round = 0; round < 3 * task->rounds_per_epoch(); ++round) {
    task->loss_and_gradient(round, x, gradient);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] -= 0.1F * gradient[i];
    }
  }
  CHECK(task->evaluate(x).accuracy > 0.91);
}

}  // namespace sotto::test::mnist_test
