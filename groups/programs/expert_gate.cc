#include <sotto/groups/programs/expert_gate.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>

namespace sotto {
namespace {

/// exp(score − highest) / Σ over the block, for one of its scores.
float share_of(std::span<const float> block, float score) {
  const float highest = *std::ranges::max_element(block);
  float sum = 0;
  for (const float other : block) {
    sum += std::exp(other - highest);
  }
  return std::exp(score - highest) / sum;
}

/// Scores, the highest first, become their softmax.
void make_shares(std::span<float> scores) {
  const float highest = scores.front();
  float sum = 0;
  for (float& score : scores) {
    score = std::exp(score - highest);
    sum += score;
  }
  for (float& share : scores) {
    share /= sum;
  }
}

}  // namespace

ExpertGate::ExpertGate(std::string_view text, std::size_t experts) : experts_(experts) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const std::string_view number = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), choices_);
  if ((kind != "top" && kind != "prototypes") || error != std::errc{} ||
      end != number.data() + number.size()) {
    refuse("gate", text, "write top:K or prototypes:K, with K experts for each token");
  }
  prototypes_ = kind == "prototypes";
  if (choices_ < 1 || choices_ > experts) {
    refuse("gate", text, fmt::format("a token goes to 1 to all {} experts", experts));
  }
  if (prototypes_ && experts % choices_ != 0) {
    refuse("gate", text,
           fmt::format("{} experts cannot be cut into {} equal blocks; take a number that divides "
                       "them",
                       experts, choices_));
  }
}

void ExpertGate::choose(std::span<const float> scores, std::span<std::uint32_t> chosen,
                        std::span<float> weights) const {
  const std::size_t tokens = scores.size() / experts_;
  check(chosen.size() == tokens * choices_ && weights.size() == chosen.size(),
        "a token has k choices");
  for (std::size_t token = 0; token < tokens; ++token) {
    const auto row = scores.subspan(token * experts_, experts_);
    const auto ids = chosen.subspan(token * choices_, choices_);
    const auto shares = weights.subspan(token * choices_, choices_);
    for (std::size_t j = 0; j < choices_; ++j) {
      const std::size_t first = prototypes_ ? j * block() : 0;
      std::size_t best = experts_;
      for (std::size_t e = first; e < first + block(); ++e) {
        const auto taken = ids.first(prototypes_ ? 0 : j);
        const bool free = std::ranges::find(taken, e) == taken.end();
        if (free && (best == experts_ || row[e] > row[best])) {
          best = e;
        }
      }
      ids[j] = static_cast<std::uint32_t>(best);
      shares[j] = row[best];
    }
    for (std::size_t j = 0; prototypes_ && j < choices_; ++j) {
      shares[j] = share_of(row.subspan(j * block(), block()), shares[j]);
    }
    if (!prototypes_) {
      make_shares(shares);
    }
  }
}

void ExpertGate::backward(std::span<const float> scores, std::span<const std::uint32_t> chosen,
                          std::span<const float> weights, std::span<const float> weight_gradient,
                          std::span<float> score_gradient) const {
  check(score_gradient.size() == scores.size(), "each score has a gradient");
  std::ranges::fill(score_gradient, 0.0F);
  const std::size_t tokens = scores.size() / experts_;
  for (std::size_t token = 0; token < tokens; ++token) {
    const auto row = scores.subspan(token * experts_, experts_);
    const auto out = score_gradient.subspan(token * experts_, experts_);
    const std::size_t at = token * choices_;
    float mean = 0;
    for (std::size_t j = 0; j < choices_; ++j) {
      mean += weights[at + j] * weight_gradient[at + j];
    }
    for (std::size_t j = 0; j < choices_; ++j) {
      const float weight = weights[at + j];
      const float gradient = weight_gradient[at + j];
      if (!prototypes_) {
        out[chosen[at + j]] = weight * (gradient - mean);
        continue;
      }
      const auto rivals = row.subspan(j * block(), block());
      for (std::size_t e = 0; e < block(); ++e) {
        out[j * block() + e] = -gradient * weight * share_of(rivals, rivals[e]);
      }
      out[chosen[at + j]] += gradient * weight;
    }
  }
}

std::string ExpertGate::text() const {
  return fmt::format("{}:{}", prototypes_ ? "prototypes" : "top", choices_);
}

double add_balance_gradient(std::span<const float> scores, std::span<const std::uint32_t> chosen,
                            std::size_t experts, double scale, std::span<float> score_gradient) {
  const std::size_t tokens = scores.size() / experts;
  if (tokens == 0) {
    return 0;
  }
  const std::size_t choices = chosen.size() / tokens;
  const double each = 1.0 / static_cast<double>(tokens);
  std::vector<double> firsts(experts);
  for (std::size_t token = 0; token < tokens; ++token) {
    firsts[chosen[token * choices]] += each;
  }
  double loss = 0;
  const auto all = static_cast<double>(experts);
  for (std::size_t token = 0; token < tokens; ++token) {
    const auto row = scores.subspan(token * experts, experts);
    const auto out = score_gradient.subspan(token * experts, experts);
    const double highest = static_cast<double>(*std::ranges::max_element(row));
    double sum = 0;
    double mean = 0;  // Σ_e c_e softmax_e
    for (std::size_t e = 0; e < experts; ++e) {
      const double power = std::exp(static_cast<double>(row[e]) - highest);
      sum += power;
      mean += firsts[e] * power;
    }
    mean /= sum;
    loss += all * each * mean;
    for (std::size_t e = 0; e < experts; ++e) {
      const double share = std::exp(static_cast<double>(row[e]) - highest) / sum;
      out[e] += static_cast<float>(scale * all * each * share * (firsts[e] - mean));
    }
  }
  return loss;
}

}  // namespace sotto
