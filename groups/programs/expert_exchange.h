// Experts that lie at different nodes: tokens go to the experts that their gate chooses, what the
// experts make of them comes back, and gradients take the same ways.
//
// Sources: Shazeer et al., arXiv:1701.06538; He et al., "FastMoE", arXiv:2103.13262; Lepikhin et
// al., "GShard", arXiv:2006.16668 (capacity).
//
// E experts lie in order at the p members of a group, E/p at each. A node has at most T tokens of
// width h in a round, and each goes to k experts (expert_gate.h):
//   y_t = Σ_j g_tj expert_tj(x_t)
// A node may send C = ⌈f k T / E⌉ tokens to an expert, f being the capacity factor; or C = ⌈f T /
// E⌉ whatever k is (CapacityBy::one), so that gates of different k give experts as much work, as
// M6-T compares them (Yang et al., arXiv:2105.15082). They are taken in the order of first choices
// of tokens 0 … T − 1, then second choices, and so on; what does not fit is dropped: it adds
// nothing to y, and weights stay as they are. So which tokens are dropped depends on nothing but
// the scores. An expert sees its rows in the order (member, token). With tokens dealt to the
// members in contiguous runs that is one order for any p, and so are the sums over its rows.
//
// A round has four exchanges, each a stage's collective (program.h), in this order:
//
// | begins with           | is carried by            | ends with                                 |
// | --------------------- | ------------------------ | ----------------------------------------- |
// | dispatch(x, scores)   | dispatching()            | arrive(): rows(e) → results(e)            |
// | combine()             | combining()              | finish(y)                                 |
// | dispatch_gradient(dy) | dispatching_gradient()   | arrive_gradient(): result_gradient(e) →   |
// |                       |                          | row_gradient(e)                           |
// | combine_gradient()    | combining_gradient()     | finish_gradient(dx, dscores)              |
//
// The arrows stand for the caller's experts. Where nothing is learnt, the last two are left out.
// Each row is encoded by itself, without memory; a node's own tokens stay as they are.
//
// Gradients of an expert are whole at its owner: scale the loss by the number of all nodes' tokens,
// and do not divide by p again.
// Rows are activations: **whoever gets them learns of the data**; privacy/ does not cover them.
//
// Volume: 4 exchanges of p − 1 frames, each k T h (p − 1)/p elements in the mean and C E/p
// (p − 1) h at most; four latencies in a row. Memory: 8 E C h floats, and frames.
//
// One thread at a time; allocates only in the constructor. The member's node must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/groups/all_to_all.h>
#include <sotto/groups/programs/expert_gate.h>

namespace sotto {

/// The even share of tokens that a capacity factor multiplies.
enum class CapacityBy : std::uint8_t {
  choices,  ///< k T / E: as many as come to an expert where all get as many
  one,      ///< T / E, as with one choice a token; with k > 1 choices tokens are dropped sooner
};

/// A layer of experts, the same at all members.
struct ExpertOptions {
  std::size_t experts = 1;     ///< number of experts, E, a multiple of the members
  std::size_t width = 1;       ///< elements of a token, h
  std::size_t tokens = 1;      ///< most tokens that a node has in a round, T
  std::string gate = "top:1";  ///< text of an ExpertGate
  /// Capacity factor f; 0: no token is dropped.
  double capacity = 1.25;
  CapacityBy capacity_by = CapacityBy::choices;
  std::string compressor = "none";  ///< compressor of tokens and results (Carried::activation)
  std::string gradient_compressor =
      "none";  ///< compressor of gradients (Carried::activation_gradient)
};

/// The most rows that a node can send to an expert in a round.
inline constexpr std::size_t kMostRowsToExpert = std::numeric_limits<std::uint16_t>::max();
/// The rows of a node that an expert takes, C, where each token has so many choices; they may be
/// more than can be sent. The capacity must be finite and not below 0.
std::size_t rows_to_expert(const ExpertOptions& options, std::size_t choices);

class ExpertExchange {
 public:
  /// Throws Error (field "experts") for a number that the members do not divide, (field "capacity")
  /// for a factor below 0, (field "tokens") for none, as ExpertGate, and as AllToAll.
  ExpertExchange(const GroupMember& member, const ExpertOptions& options);

  /// The layer's gate.
  const ExpertGate& gate() const { return gate_; }
  /// Experts of this node: E/p.
  std::size_t own_experts() const { return own_; }
  /// The first of this node's experts.
  std::size_t first_expert() const { return first_; }
  /// The most tokens that a node may send to an expert, C.
  std::size_t capacity() const { return there_.room().capacity; }
  /// Choices of this node's tokens that did not fit, in the last round.
  std::size_t dropped() const { return dropped_; }
  /// Rows that this node sent to each expert, in the last round.
  std::span<const std::uint16_t> sent() const { return counts_; }
  /// The experts that this node's tokens chose, k a token.
  std::span<const std::uint32_t> chosen() const { return std::span(chosen_).first(choices_made()); }
  /// The weights of these choices, k a token.
  std::span<const float> weights() const { return std::span(weights_).first(choices_made()); }

  /// Chooses experts for the tokens x, at most T rows of h, by their scores, as many rows of E, and
  /// begins to send them. x may go; the scores stay until the round ends. Fault::non_finite for
  /// scores that are not finite.
  Status dispatch(std::span<const float> x, std::span<const float> scores);
  /// Carries what `dispatch` began.
  Collective& dispatching() { return there_; }
  /// Sorts the tokens that came by expert.
  void arrive();
  /// The tokens of own expert `e`, 0 … own_experts() − 1: rows of h, which stay until the next
  /// round.
  std::span<const float> rows(std::size_t e) const { return of_expert(std::span(rows_), e); }
  /// Where the caller writes what own expert `e` makes of its rows.
  std::span<float> results(std::size_t e) { return of_expert(std::span(results_), e); }
  /// Begins to send the results back.
  void combine() { back_.begin(there_.counts(), by_member()); }
  /// Carries what `combine` began.
  Collective& combining() { return back_; }
  /// Writes y, as long as x. Fault::unexpected where a member sent other rows back than it got.
  Status finish(std::span<float> y) const;

  /// Begins to send ∂L/∂y, as long as x, to the experts; dy may go.
  void dispatch_gradient(std::span<const float> dy);
  /// Carries what `dispatch_gradient` began.
  Collective& dispatching_gradient() { return gradient_there_; }
  /// Sorts the gradients that came by expert. Fault as finish.
  Status arrive_gradient();
  /// ∂L/∂results of own expert `e`, rows of h.
  std::span<const float> result_gradient(std::size_t e) const {
    return of_expert(std::span(gradients_), e);
  }
  /// Where the caller writes ∂L/∂rows of own expert `e`; the results are gone by then.
  std::span<float> row_gradient(std::size_t e) { return of_expert(std::span(results_), e); }
  /// Begins to send ∂L/∂rows back.
  void combine_gradient() { gradient_back_.begin(there_.counts(), by_member()); }
  /// Carries what `combine_gradient` began.
  Collective& combining_gradient() { return gradient_back_; }
  /// Writes ∂L/∂x by way of the experts, and ∂L/∂scores. Fault as finish.
  Status finish_gradient(std::span<float> dx, std::span<float> dscores) const;

 private:
  static constexpr std::size_t kDropped = static_cast<std::size_t>(-1);

  template <typename T>
  std::span<T> of_expert(std::span<T> matrix, std::size_t e) const {
    return matrix.subspan(begins_[e], begins_[e + 1] - begins_[e]);
  }
  std::size_t choices_made() const { return tokens_ * gate_.choices(); }
  /// Chooses, counts, and says for each choice which row it is.
  void route(std::span<const float> scores);
  /// This node's rows for the experts: those of `tokens`, times their weights where `weighted`.
  std::span<const float> pack(std::span<const float> tokens, bool weighted);
  /// Sorts rows that came by (member, expert) into matrices by expert.
  void by_expert(std::span<const float> came, std::span<float> matrices) const;
  /// The results, by (member, expert).
  std::span<const float> by_member();
  /// Calls visit(offset by member, offset in matrices, elements) for the rows of each member for
  /// each own expert.
  template <typename Visit>
  void for_blocks(const Visit& visit) const;
  /// Fault::unexpected naming the member that sent other rows than are due.
  Status require_counts(const AllToAll& came, std::span<const std::uint16_t> due) const;
  /// out_t ← Σ_j rows of the token's choices, times their weights where `weighted`.
  void gather(std::span<const float> rows, bool weighted, std::span<float> out) const;

  const LocalNode* node_;
  Group group_;
  ExpertOptions options_;
  ExpertGate gate_;
  std::size_t own_;
  std::size_t first_;
  AllToAll there_;
  AllToAll back_;
  AllToAll gradient_there_;
  AllToAll gradient_back_;

  std::size_t tokens_ = 0;             // tokens of this round
  std::span<const float> scores_;      // scores of this round
  std::vector<std::uint32_t> chosen_;  // experts chosen, k a token
  std::vector<float> weights_;
  std::vector<float> weight_gradient_;
  std::vector<std::size_t> row_of_;    // number of each choice's row among this node's
  std::vector<std::uint16_t> counts_;  // rows sent, by expert
  std::vector<std::size_t> next_row_;  // next number of a row, by expert
  std::size_t dropped_ = 0;
  std::vector<float> packed_;        // rows on their way out
  std::vector<std::size_t> begins_;  // where own experts' matrices begin, in elements
  std::vector<float> rows_;          // tokens, by own expert
  std::vector<float> results_;
  std::vector<float> gradients_;  // gradients at the results
};

}  // namespace sotto
