#include "conv_block.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/check.h>

#include "dense_layer.h"

namespace sotto {

ConvBlock::ConvBlock(ParameterLayout& layout, std::string_view name, const ImageShape& in,
                     std::size_t channels, std::size_t kernel)
    : in_(in),
      out_{.channels = channels, .height = in.height / 2, .width = in.width / 2},
      kernel_(kernel),
      weight_(append_block(layout, fmt::format("{}.weight", name),
                           {channels, in.channels, kernel, kernel})),
      bias_(append_block(layout, fmt::format("{}.bias", name), {channels})),
      columns_(patch() * plane()),
      column_delta_(patch() * plane()),
      z_(channels * plane()) {
  check(kernel % 2 == 1, "a kernel with a middle");
}

void ConvBlock::initialize(std::span<float> parameters, const RandomKey& key) const {
  fill_uniform(parameters.subspan(weight_, out_.channels * patch()), he_bound(patch()), key);
  std::ranges::fill(parameters.subspan(bias_, out_.channels), 0.0F);
}

template <typename Copy>
void ConvBlock::for_each_run(const Copy& copy) const {
  const std::size_t half = kernel_ / 2;
  for (std::size_t row = 0; row < patch(); ++row) {
    const std::size_t channel = row / (kernel_ * kernel_);
    const std::size_t u = row / kernel_ % kernel_;
    const std::size_t v = row % kernel_;
    const std::size_t begin = v < half ? half - v : 0;  // first x with a value inside
    const std::size_t end = std::min(in_.width, std::max(in_.width + half, v) - v);
    for (std::size_t y = 0; y < in_.height; ++y) {
      if (y + u >= half && y + u - half < in_.height && begin < end) {
        copy(row * plane() + y * in_.width + begin,
             channel * plane() + (y + u - half) * in_.width + begin + v - half, end - begin);
      }
    }
  }
}

void ConvBlock::unroll(std::span<const float> image) {
  for_each_run([&](std::size_t column, std::size_t pixel, std::size_t count) {
    std::copy_n(image.data() + pixel, count, columns_.data() + column);
  });
}

void ConvBlock::fold(std::span<const float> columns, std::span<float> image) const {
  std::ranges::fill(image, 0.0F);
  for_each_run([&](std::size_t column, std::size_t pixel, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      image[pixel + i] += columns[column + i];
    }
  });
}

void ConvBlock::pool(std::span<float> y, std::span<std::uint32_t> from) const {
  std::size_t at = 0;
  for (std::size_t channel = 0; channel < out_.channels; ++channel) {
    for (std::size_t row = 0; row < out_.height; ++row) {
      for (std::size_t column = 0; column < out_.width; ++column, ++at) {
        const std::size_t corner = channel * plane() + 2 * row * in_.width + 2 * column;
        std::size_t best = corner;
        for (const std::size_t other : {corner + 1, corner + in_.width, corner + in_.width + 1}) {
          if (z_[other] > z_[best] || std::isnan(z_[other])) {
            best = other;
          }
        }
        y[at] = z_[best];
        from[at] = static_cast<std::uint32_t>(best);
      }
    }
  }
}

void ConvBlock::forward(std::span<const float> parameters, std::span<const float> x,
                        std::size_t rows, std::span<float> y) {
  from_.resize(rows * out_.size());
  const MatrixView weight = view(parameters.subspan(weight_), out_.channels, patch());
  const MatrixView bias = view(parameters.subspan(bias_), out_.channels, 1);
  MutableMatrixView z = mutable_view(z_, out_.channels, plane());
  for (std::size_t row = 0; row < rows; ++row) {
    unroll(x.subspan(row * in_.size(), in_.size()));
    z.noalias() = weight * view(columns_, patch(), plane());
    z.colwise() += bias.col(0);
    pool(y.subspan(row * out_.size(), out_.size()),
         std::span(from_).subspan(row * out_.size(), out_.size()));
  }
  relu(y);  // the maximum and the ReLU commute, and a quarter of the values is left
}

void ConvBlock::backward(std::span<const float> parameters, std::span<const float> x,
                         std::span<const float> y, std::span<float> dy, std::size_t rows,
                         std::span<float> gradient, std::span<float> dx) {
  relu_backward(y, dy);
  const MatrixView weight = view(parameters.subspan(weight_), out_.channels, patch());
  MutableMatrixView weight_gradient =
      mutable_view(gradient.subspan(weight_), out_.channels, patch());
  const auto bias_gradient = gradient.subspan(bias_, out_.channels);
  weight_gradient.setZero();
  std::ranges::fill(bias_gradient, 0.0F);
  const MatrixView dz = view(z_, out_.channels, plane());
  for (std::size_t row = 0; row < rows; ++row) {
    std::ranges::fill(z_, 0.0F);
    for (std::size_t i = 0; i < out_.size(); ++i) {
      const float delta = dy[row * out_.size() + i];
      z_[from_[row * out_.size() + i]] = delta;  // each place of z lies in one window only
      bias_gradient[i / (out_.height * out_.width)] += delta;
    }
    unroll(x.subspan(row * in_.size(), in_.size()));
    weight_gradient.noalias() += dz * view(columns_, patch(), plane()).transpose();
    if (!dx.empty()) {
      mutable_view(column_delta_, patch(), plane()).noalias() = weight.transpose() * dz;
      fold(column_delta_, dx.subspan(row * in_.size(), in_.size()));
    }
  }
}

}  // namespace sotto
