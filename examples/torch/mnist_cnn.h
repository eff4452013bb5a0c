// What cnn.cc and cnn_plain.cc share: MNIST as tensors, and a network of two convolutions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

#include <torch/torch.h>

#include <sotto/trainers/data/loaders.h>

struct Images {
  torch::Tensor pixels;  // N x 1 x 28 x 28, 0 … 1
  torch::Tensor labels;  // N

  /// `count` images, drawn by chance.
  Images sample(std::int64_t count) const {
    const auto chosen = torch::randint(labels.size(0), {count}, torch::kLong);
    return {pixels.index_select(0, chosen), labels.index_select(0, chosen)};
  }
};

inline Images images_of(const sotto::Examples& examples) {
  const auto count = static_cast<std::int64_t>(examples.size());
  Images images{torch::empty({count, 1, 28, 28}), torch::empty({count}, torch::kLong)};
  float* pixels = images.pixels.data_ptr<float>();
  std::int64_t* labels = images.labels.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < examples.size(); ++i) {
    examples.copy_row(i, {pixels + i * examples.features(), examples.features()});
    labels[i] = examples.labels()[i];
  }
  return images;
}

/// The images to train on, and those to test with, from a folder of IDX files.
inline std::pair<Images, Images> read_mnist(const std::filesystem::path& folder) {
  const auto data = sotto::load_mnist(folder);
  return {images_of(data->train()), images_of(data->test())};
}

struct CnnImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    auto y = torch::relu(torch::max_pool2d(first->forward(x), 2));
    y = torch::relu(torch::max_pool2d(second->forward(y), 2));
    y = torch::relu(hidden->forward(y.flatten(1)));
    return torch::log_softmax(output->forward(y), 1);
  }

  torch::nn::Conv2d first = register_module("first", torch::nn::Conv2d(1, 16, 5));
  torch::nn::Conv2d second = register_module("second", torch::nn::Conv2d(16, 32, 5));
  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(32 * 4 * 4, 64));
  torch::nn::Linear output = register_module("output", torch::nn::Linear(64, 10));
};
TORCH_MODULE(Cnn);

/// The part of the images that the network takes for what they are.
inline double accuracy(Cnn& model, const Images& images) {
  const torch::NoGradGuard no_grad;
  return model->forward(images.pixels)
      .argmax(1)
      .eq(images.labels)
      .to(torch::kDouble)
      .mean()
      .item<double>();
}
