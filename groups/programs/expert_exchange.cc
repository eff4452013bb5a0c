#include <sotto/groups/programs/expert_exchange.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

std::size_t experts_a_node(const GroupMember& member, std::size_t experts) {
  const auto members = static_cast<std::size_t>(member.group.size());
  if (experts < 1 || experts % members != 0) {
    refuse("experts", fmt::format("{}", experts),
           fmt::format("they are dealt evenly to {} nodes; take a multiple of that", members));
  }
  return experts / members;
}

RowRoom room_of(const GroupMember& member, const ExpertOptions& options, std::size_t choices) {
  if (!(options.capacity >= 0 && std::isfinite(options.capacity))) {
    refuse("capacity", fmt::format("{}", options.capacity),
           "take a factor above 0, usually 1 to 2.5, or 0 for experts that take every token");
  }
  if (options.tokens < 1) {
    refuse("tokens", "0", "say how many tokens a node has in a round at most");
  }
  const std::size_t capacity = rows_to_expert(options, choices);
  if (capacity > kMostRowsToExpert) {
    refuse("tokens", fmt::format("{}", options.tokens),
           fmt::format("an expert would take {} of them, and {} are the most: give fewer, or a "
                       "smaller capacity",
                       capacity, kMostRowsToExpert));
  }
  return {.width = options.width,
          .slots = experts_a_node(member, options.experts),
          .capacity = capacity};
}

}  // namespace

std::size_t rows_to_expert(const ExpertOptions& options, std::size_t choices) {
  if (options.capacity == 0) {
    return options.tokens;
  }
  const auto all = static_cast<double>(options.tokens);
  // A factor such as 1.1 is a little more in double, and must not round a whole number up.
  constexpr double kRounding = 1e-12;
  const std::size_t counted = options.capacity_by == CapacityBy::one ? 1 : choices;
  const double fits = std::ceil(options.capacity * static_cast<double>(counted) * all /
                                static_cast<double>(options.experts) * (1 - kRounding));
  return static_cast<std::size_t>(std::min(all, fits));
}

ExpertExchange::ExpertExchange(const GroupMember& member, const ExpertOptions& options)
    : node_(member.node),
      group_(member.group),
      options_(options),
      gate_(options.gate, options.experts),
      own_(experts_a_node(member, options.experts)),
      first_(static_cast<std::size_t>(group_.position) * own_),
      there_(member, room_of(member, options, gate_.choices()),
             {.data = Carried::activation, .compressor = options.compressor}),
      back_(member, there_.room(), {.data = Carried::activation, .compressor = options.compressor}),
      gradient_there_(
          member, there_.room(),
          {.data = Carried::activation_gradient, .compressor = options.gradient_compressor}),
      gradient_back_(
          member, there_.room(),
          {.data = Carried::activation_gradient, .compressor = options.gradient_compressor}),
      chosen_(options.tokens * gate_.choices()),
      weights_(chosen_.size()),
      weight_gradient_(chosen_.size()),
      row_of_(chosen_.size()),
      counts_(options.experts),
      next_row_(options.experts),
      packed_(options.experts * there_.room().capacity * options.width),
      begins_(own_ + 1),
      rows_(packed_.size()),
      results_(packed_.size()),
      gradients_(packed_.size()) {}

Status ExpertExchange::dispatch(std::span<const float> x, std::span<const float> scores) {
  tokens_ = x.size() / options_.width;
  check(x.size() == tokens_ * options_.width && tokens_ <= options_.tokens,
        "tokens are rows, as many as the layer is made for at most");
  check(scores.size() == tokens_ * options_.experts, "a token has a score for each expert");
  if (Status status = node_->require_finite(scores, "matrix of scores"); !status.ok()) {
    return status;
  }
  scores_ = scores;
  route(scores);
  there_.begin(counts_, pack(x, false));
  return {};
}

void ExpertExchange::route(std::span<const float> scores) {
  const std::size_t k = gate_.choices();
  gate_.choose(scores, std::span(chosen_).first(choices_made()),
               std::span(weights_).first(choices_made()));
  std::ranges::fill(counts_, std::uint16_t{0});
  dropped_ = 0;
  for (std::size_t j = 0; j < k; ++j) {
    for (std::size_t at = j; at < choices_made(); at += k) {
      std::uint16_t& count = counts_[chosen_[at]];
      const bool fits = count < capacity();
      row_of_[at] = fits ? 0 : kDropped;
      count = static_cast<std::uint16_t>(count + (fits ? 1 : 0));
      dropped_ += fits ? 0 : 1;
    }
  }
  // Rows are numbered by expert, and for an expert by token.
  std::size_t row = 0;
  for (std::size_t e = 0; e < counts_.size(); ++e) {
    next_row_[e] = row;
    row += counts_[e];
  }
  for (std::size_t at = 0; at < choices_made(); ++at) {
    if (row_of_[at] != kDropped) {
      row_of_[at] = next_row_[chosen_[at]]++;
    }
  }
}

std::span<const float> ExpertExchange::pack(std::span<const float> tokens, bool weighted) {
  const std::size_t h = options_.width;
  for (std::size_t at = 0; at < choices_made(); ++at) {
    if (row_of_[at] != kDropped) {
      const auto row = std::span(packed_).subspan(row_of_[at] * h, h);
      std::ranges::copy(tokens.subspan(at / gate_.choices() * h, h), row.begin());
      if (weighted) {
        node_->ops().scale(weights_[at], row);
      }
    }
  }
  return std::span(packed_).first((choices_made() - dropped_) * h);
}

template <typename Visit>
void ExpertExchange::for_blocks(const Visit& visit) const {
  const auto counts = there_.counts();
  for (std::size_t e = 0; e < own_; ++e) {
    std::size_t offset = 0;
    std::size_t in_matrix = begins_[e];
    for (std::size_t at = 0; at < counts.size(); ++at) {
      const std::size_t elements = counts[at] * options_.width;
      if (at % own_ == e) {
        visit(offset, in_matrix, elements);
        in_matrix += elements;
      }
      offset += elements;
    }
  }
}

void ExpertExchange::by_expert(std::span<const float> came, std::span<float> matrices) const {
  for_blocks([&](std::size_t by_member, std::size_t in_matrix, std::size_t elements) {
    std::ranges::copy(came.subspan(by_member, elements),
                      matrices.subspan(in_matrix, elements).begin());
  });
}

std::span<const float> ExpertExchange::by_member() {
  const std::span<float> going = packed_;
  for_blocks([&](std::size_t by_member, std::size_t in_matrix, std::size_t elements) {
    std::ranges::copy(std::span(results_).subspan(in_matrix, elements),
                      going.subspan(by_member, elements).begin());
  });
  return going.first(begins_[own_]);
}

void ExpertExchange::arrive() {
  std::ranges::fill(begins_, std::size_t{0});
  const auto counts = there_.counts();
  for (std::size_t at = 0; at < counts.size(); ++at) {
    begins_[at % own_ + 1] += counts[at] * options_.width;
  }
  for (std::size_t e = 0; e < own_; ++e) {
    begins_[e + 1] += begins_[e];
  }
  by_expert(there_.rows(), rows_);
}

Status ExpertExchange::require_counts(const AllToAll& came,
                                      std::span<const std::uint16_t> due) const {
  for (std::size_t at = 0; at < due.size(); ++at) {
    if (came.counts()[at] != due[at]) {
      return node_->fault(
          Fault::unexpected,
          fmt::format("node {} sent {} rows for expert {} of a node where {} are due",
                      group_.rank_of(static_cast<int>(at / own_)), came.counts()[at], at % own_,
                      due[at]));
    }
  }
  return {};
}

void ExpertExchange::gather(std::span<const float> rows, bool weighted,
                            std::span<float> out) const {
  const std::size_t h = options_.width;
  check(out.size() == tokens_ * h, "a token has a row");
  node_->ops().fill(0, out);
  for (std::size_t at = 0; at < choices_made(); ++at) {
    if (row_of_[at] != kDropped) {
      node_->ops().axpy(weighted ? weights_[at] : 1, rows.subspan(row_of_[at] * h, h),
                        out.subspan(at / gate_.choices() * h, h));
    }
  }
}

Status ExpertExchange::finish(std::span<float> y) const {
  if (Status status = require_counts(back_, counts_); !status.ok()) {
    return status;
  }
  gather(back_.rows(), true, y);
  return {};
}

void ExpertExchange::dispatch_gradient(std::span<const float> dy) {
  const std::size_t h = options_.width;
  check(dy.size() == tokens_ * h, "a token has a row");
  for (std::size_t at = 0; at < choices_made(); ++at) {
    weight_gradient_[at] =
        row_of_[at] == kDropped
            ? 0
            : static_cast<float>(node_->ops().dot(dy.subspan(at / gate_.choices() * h, h),
                                                  back_.rows().subspan(row_of_[at] * h, h)));
  }
  gradient_there_.begin(counts_, pack(dy, true));
}

Status ExpertExchange::arrive_gradient() {
  if (Status status = require_counts(gradient_there_, there_.counts()); !status.ok()) {
    return status;
  }
  by_expert(gradient_there_.rows(), gradients_);
  return {};
}

Status ExpertExchange::finish_gradient(std::span<float> dx, std::span<float> dscores) const {
  if (Status status = require_counts(gradient_back_, counts_); !status.ok()) {
    return status;
  }
  gather(gradient_back_.rows(), false, dx);
  const std::size_t choices = choices_made();
  gate_.backward(scores_, std::span(chosen_).first(choices), std::span(weights_).first(choices),
                 std::span(weight_gradient_).first(choices), dscores);
  return {};
}

}  // namespace sotto
