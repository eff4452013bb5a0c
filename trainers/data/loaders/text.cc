#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/decoded_text.h>
#include <sotto/trainers/data/loaders.h>

#include "file.h"

namespace sotto {
namespace {

constexpr std::uint64_t kMostTextBytes = std::uint64_t{1} << 27;
constexpr std::size_t kMostContext = 256;
constexpr std::size_t kTestPlaces = 4096;

/// A text as numbers of symbols, and how many different ones there are.
struct Symbols {
  std::vector<std::uint8_t> text;
  std::size_t count = 0;
  std::vector<std::string> bytes;  ///< bytes for which the symbols stand, as numbers
};

Symbols read_symbols(const std::filesystem::path& file) {
  const std::string content =
      unpack_text(read_file(file, kMostTextBytes), file.string(), kMostTextBytes);
  std::array<bool, 256> occurs{};
  for (const char c : content) {
    occurs[static_cast<unsigned char>(c)] = true;
  }
  std::array<std::uint8_t, 256> number{};
  Symbols symbols;
  for (std::size_t byte = 0; byte < occurs.size(); ++byte) {
    if (occurs[byte]) {
      number[byte] = static_cast<std::uint8_t>(symbols.count++);
      symbols.bytes.push_back(fmt::to_string(byte));
    }
  }
  symbols.text.reserve(content.size());
  for (const char c : content) {
    symbols.text.push_back(number[static_cast<unsigned char>(c)]);
  }
  return symbols;
}

/// Windows of a text: example i is `context` symbols from begin + i × stride, one-hot, and the one
/// behind them as label.
class TextWindows final : public Examples {
 public:
  TextWindows(std::shared_ptr<const Symbols> symbols, std::size_t context, std::size_t begin,
              std::size_t stride, std::size_t count)
      : Examples(context * symbols->count, labels_of(*symbols, context, begin, stride, count)),
        symbols_(std::move(symbols)),
        context_(context),
        begin_(begin),
        stride_(stride) {}

  void copy_row(std::size_t row, std::span<float> out) const override {
    check(row < size() && out.size() == features(), "TextWindows::copy_row within bounds");
    std::fill(out.begin(), out.end(), 0.0F);
    const auto window = std::span(symbols_->text).subspan(begin_ + row * stride_, context_);
    for (std::size_t i = 0; i < context_; ++i) {
      out[i * symbols_->count + window[i]] = 1;
    }
  }

  void copy_labels(std::size_t row, std::span<std::int32_t> out) const override {
    check(row < size() && !out.empty() && out.size() <= context_,
          "TextWindows::copy_labels within bounds");
    const std::size_t end = begin_ + row * stride_ + context_ + 1;
    const auto labels = std::span(symbols_->text).subspan(end - out.size(), out.size());
    std::copy(labels.begin(), labels.end(), out.begin());
  }

 private:
  static std::vector<std::int32_t> labels_of(const Symbols& symbols, std::size_t context,
                                             std::size_t begin, std::size_t stride,
                                             std::size_t count) {
    std::vector<std::int32_t> labels(count);
    for (std::size_t i = 0; i < count; ++i) {
      labels[i] = symbols.text[begin + i * stride + context];
    }
    return labels;
  }

  std::shared_ptr<const Symbols> symbols_;
  std::size_t context_;
  std::size_t begin_;
  std::size_t stride_;
};

}  // namespace

std::shared_ptr<const Dataset> load_text(const std::filesystem::path& file, std::size_t context) {
  if (context == 0 || context > kMostContext) {
    refuse_file(file, "",
                fmt::format("context={} is given; 1 … {} is expected", context, kMostContext));
  }
  const auto symbols = std::make_shared<const Symbols>(read_symbols(file));
  const std::size_t length = symbols->text.size();
  const std::size_t held_out = length / 10;
  if (held_out <= context) {
    refuse_file(file, "",
                fmt::format("{} bytes; at least {} are expected for a context of {}", length,
                            10 * (context + 1), context));
  }
  const std::size_t places = held_out - context;
  const std::size_t stride = (places + kTestPlaces - 1) / kTestPlaces;
  const std::size_t cut = length - held_out;
  auto train = std::make_unique<TextWindows>(symbols, context, 0, 1, cut - context);
  auto test =
      std::make_unique<TextWindows>(symbols, context, cut, stride, (places + stride - 1) / stride);
  return std::make_shared<const Dataset>(
      file.string(), static_cast<int>(symbols->count), std::move(train), std::move(test),
      DataFacts{.sequence = SequenceShape{.positions = context, .symbols = symbols->count},
                .names = {.classes = symbols->bytes}});
}

}  // namespace sotto
