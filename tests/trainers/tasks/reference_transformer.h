// The transformer again, as plain loops in double precision over one position at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <sotto/trainers/tasks/model.h>

#include "trainers/tasks/reference_models.h"

namespace sotto::test {

class TransformerReference {
 public:
  TransformerReference(const ParameterLayout& layout, const SequenceShape& input, std::size_t heads)
      : layout_(layout), input_(input), heads_(heads) {}

  /// (sequences × positions) × classes
  std::vector<double> scores(const std::vector<double>& parameters, const std::vector<double>& x) {
    parameters_ = parameters;
    shares_.clear();
    std::vector<double> all;
    for (std::size_t begin = 0; begin < x.size(); begin += input_.size()) {
      for (const Vector& row : sequence(std::span(x).subspan(begin, input_.size()))) {
        all.insert(all.end(), row.begin(), row.end());
      }
    }
    return all;
  }

  /// E Σ_e c_e m_e of the last scores' positions, summed over all layers with E experts: c_e is the
  /// part of the positions that go to expert e, m_e its mean share of the gate's softmax.
  double imbalance() const {
    double sum = 0;
    for (const auto& [layer, shares] : shares_) {
      const auto count = static_cast<double>(shares.size());
      const std::size_t experts = shares.front().size();
      for (std::size_t e = 0; e < experts; ++e) {
        double chosen = 0;
        double mean = 0;
        for (const Vector& of : shares) {
          chosen +=
              std::max_element(of.begin(), of.end()) - of.begin() == std::ptrdiff_t(e) ? 1 : 0;
          mean += of[e];
        }
        sum += static_cast<double>(experts) * chosen / count * mean / count;
      }
    }
    return sum;
  }

 private:
  using Vector = std::vector<double>;
  using Rows = std::vector<Vector>;  // one for each position

  /// The tensor; of a layer that has none of its own, that of the layer before.
  const ParameterBlock& block(const std::string& name) const {
    const auto found = std::find_if(layout_.begin(), layout_.end(),
                                    [&](const ParameterBlock& b) { return b.name == name; });
    if (found != layout_.end()) {
      return *found;
    }
    const std::size_t end = name.find('.', 2);
    return block("h." + std::to_string(std::stoul(name.substr(2, end - 2)) - 1) + name.substr(end));
  }
  double at(const ParameterBlock& b, std::size_t index) const {
    return parameters_[b.offset + index];
  }

  Vector linear(const std::string& name, const Vector& x) const {
    const ParameterBlock& weight = block(name + ".weight");
    if (name.ends_with("c_attn")) {
      Vector y(weight.shape[0]);
      for (std::size_t o = 0; o < y.size(); ++o) {
        for (std::size_t i = 0; i < x.size(); ++i) {
          y[o] += at(weight, o * x.size() + i) * x[i];
        }
      }
      return y;
    }
    return dense(parameters_, weight, block(name + ".bias"), x);
  }

  Vector normalized(const std::string& name, const Vector& x) const {
    const auto count = static_cast<double>(x.size());
    double mean = 0;
    double square = 0;
    for (const double value : x) {
      mean += value / count;
      square += value * value / count;
    }
    Vector y(x.size());
    for (std::size_t k = 0; k < x.size(); ++k) {
      y[k] =
          at(block(name + ".weight"), k) * (x[k] - mean) / std::sqrt(square - mean * mean + 1e-5) +
          at(block(name + ".bias"), k);
    }
    return y;
  }

  /// What position `i` takes from itself and those in front of it.
  Vector attended(const Rows& qkv, std::size_t i, std::size_t width) const {
    Vector y(width);
    const std::size_t size = width / heads_;
    for (std::size_t begin = 0; begin < width; begin += size) {
      Vector weights(i + 1);
      double total = 0;
      for (std::size_t j = 0; j <= i; ++j) {
        double product = 0;
        for (std::size_t k = begin; k < begin + size; ++k) {
          product += qkv[i][k] * qkv[j][width + k];
        }
        weights[j] = std::exp(product / std::sqrt(static_cast<double>(size)));
        total += weights[j];
      }
      for (std::size_t j = 0; j <= i; ++j) {
        for (std::size_t k = begin; k < begin + size; ++k) {
          y[k] += weights[j] / total * qkv[j][2 * width + k];
        }
      }
    }
    return y;
  }

  bool has(const std::string& name) const {
    return std::any_of(layout_.begin(), layout_.end(),
                       [&](const ParameterBlock& b) { return b.name == name; });
  }

  /// The mlp, or the expert with the highest score times its share of their softmax.
  Vector mlp(std::string name, const Vector& x) {
    double weight = 1;
    if (has(name + ".gate.weight")) {
      const Vector scores = linear(name + ".gate", x);
      const auto best = std::max_element(scores.begin(), scores.end());
      double total = 0;
      for (const double score : scores) {
        total += std::exp(score - *best);
      }
      weight = 1 / total;
      Vector& shares = shares_[name].emplace_back();
      for (const double score : scores) {
        shares.push_back(std::exp(score - *best) / total);
      }
      name += "." + std::to_string(best - scores.begin());
    }
    Vector inside = linear(name + ".c_fc", x);
    rectify(inside);
    Vector y = linear(name + ".c_proj", inside);
    for (double& value : y) {
      value *= weight;
    }
    return y;
  }

  Rows sequence(std::span<const double> x) {
    const ParameterBlock& symbol = block("wte.weight");
    const std::size_t width = symbol.shape[1];
    Rows h(input_.positions, Vector(width));
    for (std::size_t i = 0; i < h.size(); ++i) {
      for (std::size_t k = 0; k < width; ++k) {
        h[i][k] = at(block("wpe.weight"), i * width + k);
        for (std::size_t s = 0; s < input_.symbols; ++s) {
          h[i][k] += x[i * input_.symbols + s] * at(symbol, s * width + k);
        }
      }
    }
    const auto add = [](Vector& to, const Vector& values) {
      for (std::size_t k = 0; k < to.size(); ++k) {
        to[k] += values[k];
      }
    };
    const auto is_layer = [&](const std::string& name) {
      return std::any_of(layout_.begin(), layout_.end(),
                         [&](const ParameterBlock& b) { return b.name.starts_with(name); });
    };
    for (std::size_t l = 0; is_layer("h." + std::to_string(l) + "."); ++l) {
      const std::string name = "h." + std::to_string(l);
      Rows qkv;
      for (const Vector& row : h) {
        qkv.push_back(linear(name + ".attn.c_attn", normalized(name + ".ln_1", row)));
      }
      for (std::size_t i = 0; i < h.size(); ++i) {
        add(h[i], linear(name + ".attn.c_proj", attended(qkv, i, width)));
        add(h[i], mlp(name + ".mlp", normalized(name + ".ln_2", h[i])));
      }
    }
    for (Vector& row : h) {
      row = linear("lm_head", normalized("ln_f", row));
    }
    return h;
  }

  const ParameterLayout& layout_;
  SequenceShape input_;
  std::size_t heads_;
  Vector parameters_;
  std::map<std::string, Rows> shares_;  // softmax of each position, by layer
};

}  // namespace sotto::test
