// The models again, as plain loops in double precision: what the tests compare with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <sotto/trainers/tasks/model.h>

namespace sotto::test {

inline std::vector<double> widen(std::span<const float> values) {
  return {values.begin(), values.end()};
}

/// y = x Wᵀ + b for one row.
inline std::vector<double> dense(const std::vector<double>& parameters,
                                 const ParameterBlock& weight, const ParameterBlock& bias,
                                 std::span<const double> x) {
  std::vector<double> y(bias.size);
  for (std::size_t o = 0; o < y.size(); ++o) {
    y[o] = parameters[bias.offset + o];
    for (std::size_t i = 0; i < x.size(); ++i) {
      y[o] += parameters[weight.offset + o * x.size() + i] * x[i];
    }
  }
  return y;
}

inline void rectify(std::vector<double>& values) {
  for (double& value : values) {
    value = value > 0 ? value : 0;
  }
}

/// Convolution that keeps the size, 2 × 2 maximum, ReLU, of one image; `shape` becomes the
/// result's.
inline std::vector<double> conv_block(const std::vector<double>& parameters,
                                      const ParameterBlock& weight, const ParameterBlock& bias,
                                      const std::vector<double>& image, ImageShape& shape) {
  const auto height = static_cast<std::ptrdiff_t>(shape.height);
  const auto width = static_cast<std::ptrdiff_t>(shape.width);
  const auto kernel = static_cast<std::ptrdiff_t>(weight.shape[2]);
  const auto inputs = static_cast<std::ptrdiff_t>(shape.channels);
  const auto at = [&](std::ptrdiff_t o, std::ptrdiff_t y, std::ptrdiff_t x) {
    double sum = parameters[bias.offset + static_cast<std::size_t>(o)];
    for (std::ptrdiff_t i = 0; i < inputs; ++i) {
      for (std::ptrdiff_t u = 0; u < kernel; ++u) {
        for (std::ptrdiff_t v = 0; v < kernel; ++v) {
          const std::ptrdiff_t row = y + u - kernel / 2;
          const std::ptrdiff_t column = x + v - kernel / 2;
          if (row >= 0 && row < height && column >= 0 && column < width) {
            const std::ptrdiff_t w = ((o * inputs + i) * kernel + u) * kernel + v;
            sum += parameters[weight.offset + static_cast<std::size_t>(w)] *
                   image[static_cast<std::size_t>((i * height + row) * width + column)];
          }
        }
      }
    }
    return sum;
  };
  std::vector<double> out;
  for (std::ptrdiff_t o = 0; o < static_cast<std::ptrdiff_t>(bias.size); ++o) {
    for (std::ptrdiff_t y = 0; y + 1 < height; y += 2) {
      for (std::ptrdiff_t x = 0; x + 1 < width; x += 2) {
        out.push_back(
            std::max({0.0, at(o, y, x), at(o, y, x + 1), at(o, y + 1, x), at(o, y + 1, x + 1)}));
      }
    }
  }
  shape = {.channels = bias.size, .height = shape.height / 2, .width = shape.width / 2};
  return out;
}

/// The scores of `rows` examples, read off the model's layout: a weight with four extents is a
/// convolution block's, one with two a dense layer's, with a ReLU behind all but the last.
inline std::vector<double> reference_scores(const Model& model, const ModelInput& input,
                                            const std::vector<double>& parameters,
                                            const std::vector<double>& x, std::size_t rows) {
  std::vector<double> scores;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(row * input.features);
    std::vector<double> values(begin, begin + static_cast<std::ptrdiff_t>(input.features));
    ImageShape shape = input.image.value_or(ImageShape{});
    const ParameterLayout& layout = model.layout();
    for (std::size_t block = 0; block < layout.size(); block += 2) {
      if (layout[block].shape.size() == 4) {
        values = conv_block(parameters, layout[block], layout[block + 1], values, shape);
        continue;
      }
      values = dense(parameters, layout[block], layout[block + 1], values);
      if (block + 2 < layout.size()) {
        rectify(values);
      }
    }
    scores.insert(scores.end(), values.begin(), values.end());
  }
  return scores;
}

}  // namespace sotto::test
