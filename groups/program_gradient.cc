#include <sotto/groups/program_gradient.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/topology/registry.h>

namespace sotto {
namespace {

/// All of the group's settings; a new one does not compile until it stands here.
std::string text_of(const GroupAlgorithm& chosen) {
  const auto& [axis, algorithm, compressor, topology, rule] = chosen;
  const auto& [name, rate, momentum, nesterov, decay, beta1, beta2, epsilon, bias, trust, scale,
               clip, schedule] = rule;
  const auto& [shape, every, factor, floor, warmup, total] = schedule;
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", axis,
                     algorithm, compressor, topology, name, rate, momentum, nesterov, decay, beta1,
                     beta2, epsilon, static_cast<int>(bias), trust, static_cast<int>(scale), clip,
                     static_cast<int>(shape), every, factor, floor, warmup, total);
}

std::unique_ptr<Algorithm> make_inner(const ProgramSetup& setup, const Group& group,
                                      const GroupAlgorithm& chosen) {
  const AlgorithmInfo& info = algorithm_info(chosen.algorithm);
  AlgorithmSetup inner;
  inner.rank = group.position;
  inner.nodes = group.size();
  inner.parameters = setup.parameters;
  inner.topology = make_topology(chosen.topology, group.size(),
                                 {.lazy = info.eigenvalues_above > -1, .seed = setup.seed});
  inner.step_rule = make_step_rule(chosen.step_rule);
  if (!chosen.compressor.empty()) {
    inner.compressor = make_compressor(chosen.compressor, info.contract);
  }
  // Members share the seed, and groups side by side do not share their noise.
  inner.seed = RandomStream({.seed = setup.seed, .rank = group.ranks.front()}).next_u64();
  inner.run_id = setup.run_id;
  const auto terms = std::make_shared<RoundTerms>();
  terms->stamp = stamp_of_settings(text_of(chosen));
  inner.terms = terms;
  auto made = make_algorithm(chosen.algorithm, std::move(inner));
  terms->agreement = SettingsAgreement::required;  // nobody changes settings in mid-run
  return made;
}

std::vector<Rank> merged(const std::vector<Rank>& a, const std::vector<Rank>& b) {
  std::vector<Rank> both;
  std::ranges::set_union(a, b, std::back_inserter(both));
  return both;
}

}  // namespace

ProgramGradient::ProgramGradient(
    const ProgramSetup& setup, const BuildGradientProgram& build, std::string_view axis,
    const std::function<std::unique_ptr<Algorithm>(const Group&)>& make, SettingsStamp stamp)
    : program_(setup,
               [&](const ProgramNode& node) {
                 auto program = build(node);
                 made_ = program.get();
                 return program;
               }),
      map_(NodeGrid(setup.grid, setup.nodes).group(axis, setup.rank)),
      inner_(make(map_.group())),
      stamp_(stamp) {}

ProgramGradient::ProgramGradient(const ProgramSetup& setup, const BuildGradientProgram& build,
                                 const GroupAlgorithm& algorithm)
    : ProgramGradient(
          setup, build, algorithm.axis,
          [&](const Group& group) { return make_inner(setup, group, algorithm); },
          stamp_of_settings(text_of(algorithm))) {}

ProgramGradient::ProgramGradient(const ProgramSetup& setup, const BuildGradientProgram& build,
                                 std::string_view axis, std::unique_ptr<Algorithm> algorithm,
                                 std::string_view settings)
    : ProgramGradient(
          setup, build, axis, [&](const Group& /*group*/) { return std::move(algorithm); },
          stamp_of_settings(settings)) {}

Peers ProgramGradient::peers() const {
  const Peers own = program_.peers();
  const Peers inner = map_.to_ranks(inner_->peers());
  return {.to = merged(own.to, inner.to),
          .from = merged(own.from, inner.from),
          .max_frame_bytes = std::max(own.max_frame_bytes, inner.max_frame_bytes),
          .frames_a_round = own.frames_a_round + inner.frames_a_round};
}

void ProgramGradient::begin_round() {
  inner_->begin_round();
  program_.begin_round();
}

Status ProgramGradient::take_gradient(std::span<const float> gradient) {
  if (Status status = failed_.ok() ? program_.take_gradient(gradient) : failed_; !status.ok()) {
    return status;
  }
  running_ = true;
  return hand_over();
}

Status ProgramGradient::hand_over() {
  if (!running_ || !program_.parameters_ready() || !inner_->accepts_gradient()) {
    return {};
  }
  check(made_->gradient().size() == parameters().size(),
        "a program's gradient is that of all parameters");
  running_ = false;
  failed_ = inner_->take_gradient(made_->gradient()).with_context("gradient of the program");
  return failed_;
}

Result<bool> ProgramGradient::next_exchange(Exchange& out) {
  const auto inner = inner_->next_exchange(out);
  if (!inner.ok()) {
    return in_group(inner.status());  // `out` is what it was, an exchange between ranks
  }
  if (*inner) {
    map_.to_ranks(out);
    return true;
  }
  return program_.next_exchange(out);
}

Status ProgramGradient::complete(const Exchange& exchange) {
  const Status status = of_program(exchange.tag)
                            ? program_.complete(exchange)
                            : in_group(inner_->complete(map_.to_positions(exchange)));
  return status.ok() ? hand_over() : status;
}

Status ProgramGradient::in_group(const Status& status) const {
  return status.with_context(fmt::format("in the group of nodes {}, which it numbers from 0",
                                         fmt::join(map_.group().ranks, ", ")));
}

double ProgramGradient::flops_behind(const ExchangeTag& tag) const {
  return of_program(tag) ? program_.flops_behind(tag) : inner_->flops_behind(tag);
}

AlgorithmCounters ProgramGradient::counters() const {
  AlgorithmCounters sum = inner_->counters();
  sum.add(program_.counters());
  return sum;
}

void ProgramGradient::save(ByteBuffer& out) const {
  program_.save(out);
  out.write(stamp_);
  inner_->save(out);
}

Status ProgramGradient::load(ByteReader& in) {
  if (Status status = program_.load(in); !status.ok()) {
    return status;
  }
  if (in.read<SettingsStamp>() != stamp_) {
    return {Fault::malformed,
            "the checkpoint is of another algorithm within the group, or other settings of it"};
  }
  return inner_->load(in);
}

}  // namespace sotto
