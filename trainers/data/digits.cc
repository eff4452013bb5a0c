#include <sotto/trainers/data/digits.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>

namespace sotto {
namespace {

constexpr std::size_t kSide = 28;
constexpr std::size_t kPixels = kSide * kSide;
constexpr std::size_t kClasses = 10;
constexpr std::size_t kMostImages = 1'000'000;

/// Two ways to write each digit. A stroke is a polyline; a point is two figures, x and y on a grid
/// of 10 × 10 from the top left; strokes are separated by '|'.
constexpr std::array<std::array<std::string_view, 2>, kClasses> kGlyphs = {{
    {"50 31 23 26 38 59 68 76 73 61 50", "50 32 24 26 38 58 76 74 62 50"},
    {"32 50 59", "50 59"},
    {"22 31 50 71 73 55 29 79", "23 31 60 72 64 47 28 38 57 79"},
    {"21 40 60 72 64 44 64 76 69 49 28", "20 70 44 64 76 69 49 28"},
    {"60 26 86|60 69", "30 25 75|60 69"},
    {"70 30 24 54 75 77 59 28", "30 24 44 65 77 59 39|30 70"},
    {"60 42 25 37 59 77 76 54 35 26", "50 33 26 38 59 78 66 46 27"},
    {"20 70 49", "20 70 49|35 65"},
    {"54 33 31 50 71 73 54 26 28 49 59 78 76 54", "61 40 32 44 65 77 59 39 27 35 64 72 61"},
    {"72 60 40 32 34 55 73 72 68 59", "73 51 33 45 64 73 79"},
}};

struct Point {
  double x = 0;
  double y = 0;
};

/// The pen's path from the glyph's grid to pixels: an affine map and a wobble of each point.
class Hand {
 public:
  explicit Hand(RandomStream& stream) : stream_(stream) {
    const double angle = between(-0.26, 0.26);
    const double slant = between(-0.28, 0.28);
    const double width = between(1.45, 2.25);  // pixels per grid step
    const double height = between(1.8, 2.3);
    xx_ = width * std::cos(angle);
    xy_ = height * (slant * std::cos(angle) - std::sin(angle));
    yx_ = width * std::sin(angle);
    yy_ = height * (slant * std::sin(angle) + std::cos(angle));
    centre_ = {.x = kSide / 2.0 + between(-2, 2), .y = kSide / 2.0 + between(-1.8, 1.8)};
    pen_radius = between(0.7, 1.7);
  }

  Point place(char x_figure, char y_figure) {
    constexpr double kCentre = 4.7;
    const double x = x_figure - '0' - kCentre + kWobble * stream_.normal();
    const double y = y_figure - '0' - kCentre + kWobble * stream_.normal();
    return {.x = centre_.x + xx_ * x + xy_ * y, .y = centre_.y + yx_ * x + yy_ * y};
  }

  double pen_radius = 1;

 private:
  static constexpr double kWobble = 0.32;  // grid steps

  double between(double low, double high) { return low + (high - low) * stream_.uniform(); }

  RandomStream& stream_;
  double xx_ = 0;
  double xy_ = 0;
  double yx_ = 0;
  double yy_ = 0;
  Point centre_;
};

double distance_to_segment(Point p, Point a, Point b) {
  const Point ab{.x = b.x - a.x, .y = b.y - a.y};
  const double length2 = ab.x * ab.x + ab.y * ab.y;
  const double along = (p.x - a.x) * ab.x + (p.y - a.y) * ab.y;
  const double t = length2 > 0 ? std::clamp(along / length2, 0.0, 1.0) : 0.0;
  return std::hypot(p.x - a.x - t * ab.x, p.y - a.y - t * ab.y);
}

/// Pixel rows or columns that a pen of `reach` touches between a and b, cut to the image.
std::pair<std::size_t, std::size_t> touched(double a, double b, double reach) {
  const double side = kSide;
  return {static_cast<std::size_t>(std::clamp(std::floor(std::min(a, b) - reach), 0.0, side)),
          static_cast<std::size_t>(std::clamp(std::ceil(std::max(a, b) + reach) + 1, 0.0, side))};
}

void draw_segment(Point a, Point b, double radius, std::span<float> image) {
  const auto [left, right] = touched(a.x, b.x, radius + 1);
  const auto [top, bottom] = touched(a.y, b.y, radius + 1);
  for (std::size_t y = top; y < bottom; ++y) {
    for (std::size_t x = left; x < right; ++x) {
      const Point centre{.x = static_cast<double>(x), .y = static_cast<double>(y)};
      const double ink = radius + 0.5 - distance_to_segment(centre, a, b);
      float& pixel = image[y * kSide + x];
      pixel = std::max(pixel, static_cast<float>(std::clamp(ink, 0.0, 1.0)));
    }
  }
}

/// Grain on every pixel: the sum of the four bytes of a random word is close to normal.
void add_noise(RandomStream& stream, std::span<float> image) {
  constexpr float kNoise = 0.12F;
  constexpr float kDeviation = 147.8F;  // of the sum of four uniform bytes
  for (float& pixel : image) {
    const std::uint32_t word = stream.next_u32();
    const std::uint32_t sum =
        (word & 0xFFU) + (word >> 8 & 0xFFU) + (word >> 16 & 0xFFU) + (word >> 24);
    const float grain = (static_cast<float>(sum) - 510.0F) / kDeviation;
    pixel = std::clamp(pixel + kNoise * grain, 0.0F, 1.0F);
  }
}

void draw_digit(std::size_t digit, RandomStream& stream, std::span<float> image) {
  const std::string_view glyph = kGlyphs[digit][stream.below(2)];
  Hand hand(stream);
  Point pen = hand.place(glyph[0], glyph[1]);
  for (std::size_t at = 3; at < glyph.size(); at += 3) {
    const Point next = hand.place(glyph[at], glyph[at + 1]);
    if (glyph[at - 1] != '|') {
      draw_segment(pen, next, hand.pen_radius, image);
    }
    pen = next;
  }
  add_noise(stream, image);
}

enum class Part : std::uint32_t { train = 0, test = 1 };

std::unique_ptr<const Examples> draw_part(Part part, std::size_t count, std::uint64_t seed) {
  if (count == 0 || count > kMostImages) {
    refuse(part == Part::train ? "digits: train" : "digits: test", fmt::to_string(count),
           fmt::format("expected 1 … {} images", kMostImages));
  }
  std::vector<float> values(count * kPixels);
  std::vector<std::int32_t> labels(count);
  for (std::size_t i = 0; i < count; ++i) {
    RandomStream stream({.seed = seed,
                         .round = i,
                         .purpose = Purpose::generate,
                         .bucket = static_cast<std::uint32_t>(part)});
    const std::uint64_t digit = stream.below(kClasses);
    draw_digit(digit, stream, std::span(values).subspan(i * kPixels, kPixels));
    labels[i] = static_cast<std::int32_t>(digit);
  }
  return std::make_unique<DenseExamples>(kPixels, std::move(values), std::move(labels));
}

}  // namespace

std::shared_ptr<const Dataset> make_digits(const DigitsOptions& options) {
  auto train = draw_part(Part::train, options.train, options.seed);
  auto test = draw_part(Part::test, options.test, options.seed);
  return std::make_shared<const Dataset>(
      "digits", static_cast<int>(kClasses), std::move(train), std::move(test),
      DataFacts{.image = ImageShape{.channels = 1, .height = kSide, .width = kSide}});
}

}  // namespace sotto
