// What gpt.cc and gpt_plain.cc share: a text as tensors, and a small GPT over its characters.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <torch/torch.h>

constexpr std::int64_t kContext = 64;

struct Text {
  torch::Tensor symbols;  // of the characters, numbered in the order of their bytes
  std::int64_t alphabet = 0;

  /// Rows of characters from anywhere, and the character that follows each.
  std::pair<torch::Tensor, torch::Tensor> sample(std::int64_t rows) const {
    return at(torch::randint(symbols.size(0) - kContext - 1, {rows, 1}, torch::kLong));
  }

  /// Rows at equal distances, and the character that follows each.
  std::pair<torch::Tensor, torch::Tensor> pieces(std::int64_t rows) const {
    const auto room = symbols.size(0) - kContext - 1;
    return at((torch::arange(rows) * (room / rows)).unsqueeze(1));
  }

  std::pair<torch::Tensor, torch::Tensor> at(const torch::Tensor& begin) const {
    const auto places = begin + torch::arange(kContext);
    return {symbols.index({places}), symbols.index({places + 1})};
  }
};

/// The first nine tenths, to train on, and the rest.
inline std::pair<Text, Text> read_text(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text.size() < 20 * kContext) {
    throw std::runtime_error(file + ": cannot be read, or is too short");
  }
  std::array<std::int64_t, 256> number{};
  for (const char c : text) {
    number[static_cast<unsigned char>(c)] = 1;
  }
  std::int64_t alphabet = 0;
  for (auto& entry : number) {
    entry = entry == 0 ? 0 : alphabet++;
  }
  const auto all = torch::empty({static_cast<std::int64_t>(text.size())}, torch::kLong);
  std::transform(text.begin(), text.end(), all.data_ptr<std::int64_t>(),
                 [&](char c) { return number[static_cast<unsigned char>(c)]; });
  const std::int64_t cut = all.size(0) * 9 / 10;
  return {{all.slice(0, 0, cut), alphabet}, {all.slice(0, cut), alphabet}};
}

struct BlockImpl : torch::nn::Module {
  BlockImpl(std::int64_t width, std::int64_t head_count) : heads(head_count) {
    norm1 = register_module("norm1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    norm2 = register_module("norm2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    qkv = register_module("qkv", torch::nn::Linear(width, 3 * width));
    mix = register_module("mix", torch::nn::Linear(width, width));
    wide = register_module("wide", torch::nn::Linear(width, 4 * width));
    narrow = register_module("narrow", torch::nn::Linear(4 * width, width));
  }

  torch::Tensor forward(torch::Tensor x) {
    const auto rows = x.size(0);
    const auto places = x.size(1);
    const auto width = x.size(2);
    const auto parts = qkv->forward(norm1->forward(x))
                           .view({rows, places, 3, heads, width / heads})
                           .permute({2, 0, 3, 1, 4});
    const auto future = torch::ones({places, places}, torch::kBool).triu(1);
    const auto scale = 1 / std::sqrt(static_cast<double>(width / heads));
    const auto scores =
        (parts[0].matmul(parts[1].transpose(2, 3)) * scale).masked_fill(future, -1e9);
    const auto seen = torch::softmax(scores, 3).matmul(parts[2]);
    x = x + mix->forward(seen.transpose(1, 2).reshape({rows, places, width}));
    return x + narrow->forward(torch::gelu(wide->forward(norm2->forward(x))));
  }

  std::int64_t heads;
  torch::nn::LayerNorm norm1 = nullptr, norm2 = nullptr;
  torch::nn::Linear qkv = nullptr, mix = nullptr, wide = nullptr, narrow = nullptr;
};
TORCH_MODULE(Block);

struct GptImpl : torch::nn::Module {
  explicit GptImpl(std::int64_t alphabet, std::int64_t width = 64, int layers = 2) {
    symbol = register_module("symbol", torch::nn::Embedding(alphabet, width));
    place = register_module("place", torch::nn::Embedding(kContext, width));
    for (int layer = 0; layer < layers; ++layer) {
      blocks->push_back(Block(width, 4));
    }
    register_module("blocks", blocks);
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    head = register_module("head", torch::nn::Linear(width, alphabet));
  }

  /// The mean cross entropy of the characters that follow, in nats.
  torch::Tensor loss(const std::pair<torch::Tensor, torch::Tensor>& batch) {
    auto x = symbol->forward(batch.first) + place->forward(torch::arange(kContext));
    x = head->forward(norm->forward(blocks->forward(x))).to(torch::kFloat);
    return torch::nn::functional::cross_entropy(x.flatten(0, 1), batch.second.flatten());
  }

  torch::nn::Embedding symbol = nullptr, place = nullptr;
  torch::nn::Sequential blocks;
  torch::nn::LayerNorm norm = nullptr;
  torch::nn::Linear head = nullptr;
};
TORCH_MODULE(Gpt);

/// The loss on text that was not trained on: pieces of it at equal distances.
inline double test_loss(Gpt& model, const Text& text) {
  const torch::NoGradGuard no_grad;
  return model->loss(text.pieces(256)).item<double>();
}
