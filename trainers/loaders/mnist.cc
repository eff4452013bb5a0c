#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/trainers/loaders.h>

#include "file.h"
#include "idx.h"

namespace sotto {
namespace {

constexpr int kDigits = 10;
constexpr std::string_view kExpected =
    "expected are train-images-idx3-ubyte and train-labels-idx1-ubyte, or t10k-images-idx3-ubyte "
    "and t10k-labels-idx1-ubyte, or all four, each as it is or with .gz";

struct Pair {
  std::filesystem::path images;
  std::filesystem::path labels;
};

std::optional<std::filesystem::path> plain_or_gzip(const std::filesystem::path& plain) {
  std::filesystem::path packed = plain;
  packed += ".gz";
  for (const auto& candidate : {plain, packed}) {
    if (std::filesystem::exists(candidate)) {
      return candidate;
    }
  }
  return std::nullopt;
}

std::optional<Pair> find_pair(const std::filesystem::path& directory, const std::string& prefix) {
  const auto images = plain_or_gzip(directory / (prefix + "-images-idx3-ubyte"));
  if (!images) {
    return std::nullopt;
  }
  const auto labels_path = directory / (prefix + "-labels-idx1-ubyte");
  const auto labels = plain_or_gzip(labels_path);
  if (!labels) {
    refuse_file(labels_path, "",
                fmt::format("there is no such file, nor with .gz, to go with {}",
                            images->filename().string()));
  }
  return Pair{*images, *labels};
}

struct Images {
  std::size_t height = 0;
  std::size_t width = 0;
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;

  std::size_t count() const { return labels.size(); }
  std::size_t size() const { return height * width; }
};

Images read_pair(const Pair& files) {
  IdxArray labels = read_idx(files.labels, 1);
  IdxArray images = read_idx(files.images, 3);
  if (images.extents[0] != labels.extents[0]) {
    refuse_file(files.labels, "byte 4",
                fmt::format("{} labels, but {} has {} images", labels.extents[0],
                            files.images.string(), images.extents[0]));
  }
  const auto bad = std::find_if(labels.values.begin(), labels.values.end(),
                                [](std::uint8_t label) { return label >= kDigits; });
  if (bad != labels.values.end()) {
    const auto index = static_cast<std::size_t>(bad - labels.values.begin());
    refuse_file(files.labels, fmt::format("byte {}", idx_header_bytes(1) + index),
                fmt::format("a label from 0 to {} is expected; found {}", kDigits - 1, *bad));
  }
  return {.height = images.extents[1],
          .width = images.extents[2],
          .pixels = std::move(images.values),
          .labels = {labels.values.begin(), labels.values.end()}};
}

/// Images begin … end − 1 as examples.
std::unique_ptr<const Examples> slice(const Images& images, std::size_t begin, std::size_t end) {
  const auto pixels =
      std::span(images.pixels).subspan(begin * images.size(), (end - begin) * images.size());
  std::vector<float> values(pixels.size());
  std::transform(pixels.begin(), pixels.end(), values.begin(),
                 [](std::uint8_t pixel) { return static_cast<float>(pixel) / 255.0F; });
  const auto labels = std::span(images.labels).subspan(begin, end - begin);
  return std::make_unique<DenseExamples>(images.size(), std::move(values),
                                         std::vector<std::int32_t>(labels.begin(), labels.end()));
}

}  // namespace

std::shared_ptr<const Dataset> load_mnist(const std::filesystem::path& directory) {
  require_folder(directory, kExpected);
  const auto train_files = find_pair(directory, "train");
  const auto test_files = find_pair(directory, "t10k");
  if (!train_files && !test_files) {
    refuse_file(directory, "", fmt::format("none of its files is there: {}", kExpected));
  }
  const Images first = read_pair(train_files ? *train_files : *test_files);
  const ImageShape shape{.channels = 1, .height = first.height, .width = first.width};
  std::size_t split = first.count();
  std::unique_ptr<const Examples> test;
  if (train_files && test_files) {
    const Images second = read_pair(*test_files);
    test = slice(second, 0, second.count());
  } else {
    split = first.count() * 4 / 5;
    test = slice(first, split, first.count());
  }
  return std::make_shared<const Dataset>(directory.string(), kDigits, slice(first, 0, split),
                                         std::move(test), shape);
}

}  // namespace sotto
