#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/trainers/data/loaders.h>

#include "file.h"
#include "idx.h"
#include "idx_folder.h"
#include "labels.h"

namespace sotto {
namespace {

constexpr std::size_t kMostLabels = 1000;
/// Far more than any set has. A packed file holds a thousand times its bytes, and each image takes
/// memory of its own, however small it is.
constexpr std::size_t kMostImages = std::size_t{1} << 24;

/// The classes of a data set that is known by the name of its files.
struct KnownSet {
  std::string_view ending;   ///< end of the set's name
  std::size_t first = 0;     ///< the smallest label
  std::string_view symbols;  ///< the classes' symbols, a character each
};

/// MNIST and EMNIST (Cohen et al. 2017, arXiv:1702.05373).
constexpr std::array kKnownSets = {
    KnownSet{"letters", 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
    KnownSet{"balanced", 0, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt"},
    KnownSet{"bymerge", 0, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt"},
    KnownSet{"byclass", 0, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"},
    KnownSet{"digits", 0, "0123456789"},
    KnownSet{"mnist", 0, "0123456789"},
};

struct Images {
  std::size_t height = 0;
  std::size_t width = 0;
  IdxArray pixels;
  std::vector<std::uint16_t> labels;
  IdxArray label_layout;             // of the labels' file, without its bytes
  std::filesystem::path path;        // of the pixels
  std::filesystem::path label_path;  // of the labels

  std::size_t count() const { return labels.size(); }
  std::size_t size() const { return height * width; }
};

Images read_pair(const IdxPair& files) {
  IdxFile label_file(files.labels, 1);
  IdxFile image_file(files.images, 3);
  // Headers first: what does not go together is not unpacked.
  const std::size_t count = image_file.extents()[0];
  if (count != label_file.extents()[0]) {
    refuse_file(files.labels, "byte 4",
                fmt::format("{} labels, but {} has {} images", label_file.extents()[0],
                            files.images.string(), count));
  }
  if (count > kMostImages) {
    refuse_file(files.images, "byte 4",
                fmt::format("{} images; {} is the limit", count, kMostImages));
  }
  IdxArray labels = label_file.read();
  Images images{.height = image_file.extents()[1],
                .width = image_file.extents()[2],
                .pixels = image_file.read(),
                .labels = {},
                .label_layout = {},
                .path = files.images,
                .label_path = files.labels};
  images.labels.reserve(count);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double label = labels.at(i);
    if (!(label >= 0 && label < kMostLabels && label == std::floor(label))) {
      refuse_file(
          files.labels, fmt::format("byte {}", labels.place_of(i)),
          fmt::format("a whole number from 0 to {} is expected; found {}", kMostLabels - 1, label));
    }
    images.labels.push_back(static_cast<std::uint16_t>(label));
  }
  labels.bytes = {};
  images.label_layout = std::move(labels);
  return images;
}

/// The value that becomes 1: 255 where the numbers are bytes or go as far, 1 for floating-point
/// ones that are scaled already. Throws Error for what is no image.
double white_of(const Images& images) {
  constexpr double kWhite = 255;
  constexpr double kLargestScaled = 16;  // values with mean 0 and deviation 1 stay below
  if (images.pixels.type == IdxType::u8) {
    return kWhite;
  }
  double least = 0;
  double largest = 0;
  for (std::size_t i = 0; i < images.pixels.size(); ++i) {
    const double value = images.pixels.at(i);
    if (!std::isfinite(value)) {
      refuse_file(images.path, fmt::format("byte {}", images.pixels.place_of(i)),
                  "a finite number is expected");
    }
    least = std::min(least, value);
    largest = std::max(largest, value);
  }
  const bool floating = images.pixels.type == IdxType::f32 || images.pixels.type == IdxType::f64;
  if (floating && -kLargestScaled <= least && largest <= kLargestScaled) {
    return 1;
  }
  if (least < 0 || largest > kWhite) {
    refuse_file(images.path, "",
                fmt::format("its numbers go from {} to {}; expected are pixels from 0 to 255, or "
                            "floating-point numbers from 0 to 1",
                            least, largest));
  }
  return kWhite;
}

/// The meaning of the labels.
struct Classes {
  std::size_t first = 0;  ///< the smallest label
  std::size_t count = 0;
  std::vector<std::string> names;  ///< names of the classes; empty where numbers are their names

  /// The labels as they stand in the file.
  std::vector<std::string> numbers() const {
    std::vector<std::string> numbers;
    for (std::size_t k = 0; k < count; ++k) {
      numbers.push_back(fmt::to_string(first + k));
    }
    return numbers;
  }
};

Classes classes_of(const std::string& set, std::size_t largest_label) {
  constexpr std::size_t kDigits = 10;
  if (set.empty()) {
    return {.first = 0, .count = kDigits, .names = {}};
  }
  const auto* const known =
      std::find_if(kKnownSets.begin(), kKnownSets.end(),
                   [&](const KnownSet& one) { return set.ends_with(one.ending); });
  if (known == kKnownSets.end()) {
    return {.first = 0, .count = largest_label + 1, .names = {}};
  }
  Classes classes{.first = known->first, .count = known->symbols.size(), .names = {}};
  for (const char symbol : known->symbols) {
    classes.names.emplace_back(1, symbol);
  }
  return classes;
}

/// Images begin … end − 1 as examples.
std::unique_ptr<const Examples> slice(const Images& images, const Classes& classes, double white,
                                      std::size_t begin, std::size_t end) {
  std::vector<float> values;
  values.reserve((end - begin) * images.size());
  for (std::size_t i = begin * images.size(); i < end * images.size(); ++i) {
    values.push_back(static_cast<float>(images.pixels.at(i)) / static_cast<float>(white));
  }
  std::vector<std::int32_t> labels;
  labels.reserve(end - begin);
  for (std::size_t i = begin; i < end; ++i) {
    const std::size_t label = images.labels[i];
    if (label < classes.first || label >= classes.first + classes.count) {
      refuse_file(images.label_path, fmt::format("byte {}", images.label_layout.place_of(i)),
                  fmt::format("a label from {} to {} is expected; found {}{}", classes.first,
                              classes.first + classes.count - 1, label,
                              classes.names.empty()
                                  ? " (letters are read under EMNIST's names of files, as "
                                    "emnist-letters-train-labels-idx1-ubyte)"
                                  : ""));
    }
    labels.push_back(static_cast<std::int32_t>(label - classes.first));
  }
  return std::make_unique<DenseExamples>(images.size(), std::move(values), std::move(labels));
}

}  // namespace

std::shared_ptr<const Dataset> load_mnist(const std::filesystem::path& directory,
                                          const ImageRequest& request) {
  const IdxFolder files = find_idx_files(directory, request.set, request.task);
  const Images first = read_pair(files.train ? *files.train : *files.test);
  const auto second =
      files.train && files.test ? std::optional(read_pair(*files.test)) : std::nullopt;
  std::size_t largest = *std::max_element(first.labels.begin(), first.labels.end());
  if (second) {
    largest = std::max<std::size_t>(
        largest, *std::max_element(second->labels.begin(), second->labels.end()));
  }
  const Classes classes = classes_of(files.set, largest);
  const double white = white_of(first);
  if (second && white_of(*second) != white) {
    refuse_file(
        second->path, "",
        fmt::format("its pixels are scaled unlike those of {}", first.path.filename().string()));
  }
  const std::size_t split = second ? first.count() : first.count() * 4 / 5;
  const Images& tested = second ? *second : first;
  auto train = slice(first, classes, white, 0, split);
  auto test = slice(tested, classes, white, second ? 0 : split, tested.count());
  DataFacts facts{.image = ImageShape{.channels = 1, .height = first.height, .width = first.width},
                  .names = {.classes = classes.names}};
  warn_of_rare_classes(directory, classes.numbers(), train->labels(), test->labels(), "",
                       facts.warnings);
  return std::make_shared<const Dataset>(directory.string(), static_cast<int>(classes.count),
                                         std::move(train), std::move(test), std::move(facts));
}

}  // namespace sotto
