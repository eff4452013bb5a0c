#include <sotto/study/option_names.h>

#include <array>

namespace sotto::study {
namespace {

struct Name {
  std::string_view library;
  std::string_view option;
};

/// In the order of `sotto train --help`. A name ends with a colon or, before a specification, with
/// a blank.
constexpr auto kNames = std::to_array<Name>({
    {"task", "--task"},
    {"digits", "--task digits"},
    {"model", "--model"},
    {"batch", "--batch"},
    {"partition", "--partition"},
    {"start", "--init"},
    {"nodes", "--nodes"},
    {"topology", "--topology"},
    {"weighting", "--weighting"},
    {"transport", "--transport"},
    {"timeout", "--timeout"},
    {"rendezvous", "--rendezvous"},
    {"store", "--rendezvous"},
    {"bind", "--bind"},
    {"key", "--key"},
    {"peers", "--peers"},
    {"algorithm", "--algorithm"},
    {"compressor", "--compressor"},
    {"consensus_stepsize", "--consensus-stepsize"},
    {"extrapolation_clock", "--extrapolation-clock"},
    {"freeze_step", "--freeze-step"},
    {"local_step_limit", "--local-step-limit"},
    {"codec_threads", "--codec-threads"},
    {"buckets", "--buckets"},
    {"delayed_gradient", "--delayed-gradient"},
    {"rule", "--rule"},
    {"byzantine", "--byzantine"},
    {"attack", "--attack"},
    {"step_rule", "--step-rule"},
    {"learning_rate", "--lr"},
    {"momentum", "--momentum"},
    {"nesterov", "--nesterov"},
    {"weight_decay", "--weight-decay"},
    {"beta1", "--beta1"},
    {"beta2", "--beta2"},
    {"epsilon", "--epsilon"},
    {"bias_correction", "--bias-correction"},
    {"trust_coefficient", "--trust-coefficient"},
    {"clip_norm", "--clip-norm"},
    {"schedule", "--schedule"},
    {"noise_multiplier", "--noise-multiplier"},
    {"privacy_epsilon", "--privacy-epsilon"},
    {"privacy_delta", "--privacy-delta"},
    {"privacy_unit", "--privacy-unit"},
    {"privacy_ledger", "the privacy ledger"},
    {"communication_interval", "--communication-interval"},
    {"outer_step_rule", "--outer-step-rule"},
    {"outer_learning_rate", "--outer-lr"},
    {"outer_momentum", "--outer-momentum"},
    {"outer_nesterov", "--outer-nesterov"},
    {"dump-parameters", "--dump-parameters"},
    {"checkpoint", "--checkpoint"},
});

}  // namespace

std::string with_option_names(std::string_view message) {
  for (const Name& name : kNames) {
    if (message.starts_with(name.library) && message.size() > name.library.size() &&
        (message[name.library.size()] == ':' || message[name.library.size()] == ' ')) {
      return std::string(name.option) + std::string(message.substr(name.library.size()));
    }
  }
  return std::string(message);
}

}  // namespace sotto::study
