#include <sotto/observe/figures.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace sotto {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// The mean over nodes of what `of` says; NaN without nodes.
template <typename Of>
double mean(const RunEvaluation& evaluation, const Of& of) {
  double sum = 0;
  for (const NodeStanding& node : evaluation.nodes) {
    sum += of(node);
  }
  return evaluation.nodes.empty() ? kNone : sum / static_cast<double>(evaluation.nodes.size());
}

/// Their sum; NaN without nodes.
template <typename Of>
double sum(const RunEvaluation& evaluation, const Of& of) {
  return mean(evaluation, of) * static_cast<double>(evaluation.nodes.size());
}

/// `better` of what the nodes say that say something; NaN when none does.
template <typename Of, typename Better>
double extreme(const RunEvaluation& evaluation, const Of& of, const Better& better) {
  double found = kNone;
  for (const NodeStanding& node : evaluation.nodes) {
    const double value = of(node);
    found = std::isnan(found) || better(value, found) ? value : found;
  }
  return found;
}

double mass_of(const NodeStanding& node) { return node.counters.mass.value_or(kNone); }

double epsilon_of(const NodeStanding& node) { return node.privacy ? node.privacy->epsilon : kNone; }

double error_norm_of(const NodeStanding& node) {
  return node.compression ? std::sqrt(node.compression->error) : kNone;
}

template <std::uint64_t AlgorithmCounters::*Member>
double counted_by(const NodeStanding& node) {
  return static_cast<double>(node.counters.*Member);
}

template <std::uint64_t AlgorithmCounters::*Member>
double counted_by_all(const RunEvaluation& evaluation) {
  return sum(evaluation, counted_by<Member>);
}

using Run = const RunEvaluation&;
using Node = const NodeStanding&;

double of_all(Run run, double (*value)(const CompressionSample&)) {
  return run.compression ? value(*run.compression) : kNone;
}

/// A figure of a site; NaN of a run that is none, or has no such thing.
double told(Run run, std::optional<double> SiteStanding::*figure) {
  return run.site ? ((*run.site).*figure).value_or(kNone) : kNone;
}

double epsilon_of_run(Run run) {
  return run.site ? told(run, &SiteStanding::epsilon) : extreme(run, epsilon_of, std::greater<>());
}

double mean_staleness(Run run) {
  const double rounds = static_cast<double>(run.point.round);
  return mean(run, counted_by<&AlgorithmCounters::staleness>) / std::max(1.0, rounds);
}

constexpr std::array kRunFigures = {
    RunFigure{{"test_loss", "quality", "Loss of the averaged model on the test set"},
              [](Run run) { return run.point.loss; }},
    RunFigure{{"test_accuracy", "quality", "Share of the test set that it has right, 0 to 1"},
              [](Run run) { return run.point.accuracy; }},
    RunFigure{{"test_r_squared", "quality", "R2 of a regression on the test set, 1 at best"},
              [](Run run) { return run.point.r2; }},
    RunFigure{{"test_rmse", "quality",
               "Root of the mean squared error of a regression, in the file's units"},
              [](Run run) { return run.point.rmse; }},
    RunFigure{{"consensus_distance", "health", "(1/n) sum of |x_i - x_mean|^2 over the nodes"},
              [](Run run) { return run.point.consensus_distance; }},
    RunFigure{{"compression_error_ratio", "health",
               "Squared norm of what compression leaves out, relative to what was to be sent"},
              [](Run run) { return of_all(run, error_ratio); }},
    RunFigure{{"compression_contract_use", "health",
               "The same relative to what the compressor's contract allows; above 1 it is broken"},
              [](Run run) { return of_all(run, contract_use); }},
    RunFigure{{"compression_error_norm", "health",
               "Largest norm of what a node leaves out, or remembers with error feedback"},
              [](Run run) { return extreme(run, error_norm_of, std::greater<>()); }},
    RunFigure{{"staleness_mean", "health", "Averagings between a gradient's model and its step"},
              mean_staleness},
    RunFigure{{"staleness_max", "health", "The same, of the stalest gradient"},
              [](Run run) {
                return extreme(run, counted_by<&AlgorithmCounters::most_stale>, std::greater<>());
              }},
    RunFigure{{"mass", "health", "Push-sum weight of a site"},
              [](Run run) { return told(run, &SiteStanding::mass); }},
    RunFigure{{"nodes_up", "health", "Nodes of a run whose nodes come and go that are up"},
              [](Run run) { return told(run, &SiteStanding::nodes_up); }},
    RunFigure{{"epoch", "health", "Epoch of a run with one model, of which each has other members"},
              [](Run run) { return told(run, &SiteStanding::epoch); }},
    RunFigure{{"epoch_members", "health", "Members of that epoch"},
              [](Run run) { return told(run, &SiteStanding::epoch_members); }},
    RunFigure{{"mass_min", "health", "Smallest push-sum weight of a node"},
              [](Run run) { return extreme(run, mass_of, std::less<>()); }},
    RunFigure{{"mass_max", "health", "Largest push-sum weight of a node"},
              [](Run run) { return extreme(run, mass_of, std::greater<>()); }},
    RunFigure{{"mass_drift", "health", "Mean push-sum weight of the nodes, less 1"},
              [](Run run) { return run.complete ? mean(run, mass_of) - 1 : kNone; }},
    RunFigure{{"saturated_total", "health", "Elements that the compressor clamped, of all nodes"},
              counted_by_all<&AlgorithmCounters::saturated>},
    RunFigure{{"bad_frames_total", "health", "Frames refused, of all nodes"},
              counted_by_all<&AlgorithmCounters::bad_frames>},
    RunFigure{{"drifted_total", "health", "Replicas found unequal and replaced, of all nodes"},
              counted_by_all<&AlgorithmCounters::drifted>},
    RunFigure{{"set_aside_total", "health", "Models that a robust rule gave no influence"},
              counted_by_all<&AlgorithmCounters::set_aside>},
    RunFigure{{"other_settings_total", "health", "Frames of neighbours that step differently"},
              counted_by_all<&AlgorithmCounters::other_settings>},
    RunFigure{{"privacy_epsilon", "health", "Spent by the node that told most of its data"},
              epsilon_of_run},
    RunFigure{{"sent_bytes_per_node", "network", "Bytes sent so far, mean over the nodes"},
              [](Run run) { return run.point.bytes_per_node; }},
    RunFigure{{"allreduce_bytes_per_node", "network",
               "What a ring all-reduce of every gradient would have sent meanwhile"},
              [](Run run) { return run.allreduce_bytes; }},
    RunFigure{{"traffic_saving", "network", "That over what was sent: how many times less it is"},
              [](Run run) { return run.allreduce_bytes / run.point.bytes_per_node; }},
    RunFigure{{"training_seconds", "time", "Training time so far; stands still in evaluations"},
              [](Run run) { return run.point.time_s; }},
    RunFigure{{"gradient_seconds", "time", "Of it in gradients, mean over the nodes"},
              [](Run run) { return mean(run, [](Node node) { return node.compute_s; }); }},
    RunFigure{{"codec_seconds", "time", "Compressing, decoding and mixing, mean over the nodes"},
              [](Run run) { return mean(run, [](Node node) { return node.times.algorithm_s; }); }},
    RunFigure{{"wait_seconds", "time", "Waiting for neighbours, mean over the nodes"},
              [](Run run) { return mean(run, [](Node node) { return node.times.wait_s; }); }},
};

constexpr std::array kNodeFigures = {
    NodeFigure{{"node_round", "time", "Rounds after which it stood as is told here"},
               [](Node node) { return static_cast<double>(node.round); }},
    NodeFigure{{"node_gradient_seconds_total", "time", "In gradients"},
               [](Node node) { return node.compute_s; }},
    NodeFigure{{"node_codec_seconds_total", "time", "Compressing, decoding and mixing"},
               [](Node node) { return node.times.algorithm_s; }},
    NodeFigure{{"node_wait_seconds_total", "time", "Waiting for neighbours"},
               [](Node node) { return node.times.wait_s; }},
    NodeFigure{{"node_sent_bytes_total", "network", "Bytes sent, headers of frames included"},
               sent_bytes},
    NodeFigure{{"node_mass", "health", "Push-sum weight; NaN for other algorithms"}, mass_of},
    NodeFigure{{"node_compression_error_ratio", "health", "As of the run; NaN where not measured"},
               [](Node node) { return node.compression ? error_ratio(*node.compression) : kNone; }},
    NodeFigure{{"node_compression_error_norm", "health", "Norm of what was left out"},
               error_norm_of},
    NodeFigure{{"node_staleness_max", "health", "Averagings, of the stalest gradient"},
               counted_by<&AlgorithmCounters::most_stale>},
    NodeFigure{{"node_saturated_total", "health", "Elements that the compressor clamped"},
               counted_by<&AlgorithmCounters::saturated>},
    NodeFigure{{"node_bad_frames_total", "health", "Frames refused"},
               counted_by<&AlgorithmCounters::bad_frames>},
};

constexpr std::array kLinkFigures = {
    LinkFigure{{"link_sent_bytes_total", "network", "Bytes sent over the link"},
               [](const LinkTraffic& link) { return static_cast<double>(link.bytes); }},
    LinkFigure{{"link_sent_frames_total", "network", "Frames sent over the link"},
               [](const LinkTraffic& link) { return static_cast<double>(link.frames); }},
};

}  // namespace

std::span<const RunFigure> run_figures() { return kRunFigures; }
std::span<const NodeFigure> node_figures() { return kNodeFigures; }
std::span<const LinkFigure> link_figures() { return kLinkFigures; }

double error_ratio(const CompressionSample& sample) {
  return sample.error == 0 ? 0 : sample.error / sample.signal;
}

double contract_use(const CompressionSample& sample) {
  return sample.error == 0 ? 0 : sample.error / sample.bound;
}

}  // namespace sotto
