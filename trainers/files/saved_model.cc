#include <sotto/trainers/files/saved_model.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/bytes.h>
#include <sotto/base/digest.h>
#include <sotto/kernels/vector.h>
#include <sotto/optim/round_terms.h>
#include <sotto/trainers/model_sum.h>

namespace sotto {
namespace {

namespace fs = std::filesystem;

Status no_round(const std::string& folder, std::optional<Round> round, const std::string& trouble) {
  const std::string what =
      round
          ? fmt::format("{}: round {} is not whole", folder, *round)
          : fmt::format("{}: there is no round of which all nodes have a whole checkpoint", folder);
  return {Fault::io,
          trouble.empty() ? what + ": it has no checkpoint of it" : what + ": " + trouble};
}

/// Nodes with models that do not count, as `byzantine` has them in a run's settings: "1,5".
std::set<std::string> left_out(const std::string& agreement) {
  std::set<std::string> ranks;
  const std::string list = setting_in(agreement, "byzantine").value_or("");
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    ranks.insert(list.substr(at, end - at));
    at = end + 1;
  }
  return ranks;
}

/// The mean of a round's models.
Result<SavedModel> mean_of(std::span<const CheckpointName> files) {
  SavedModel saved;
  ModelSum sum;
  std::size_t dimension = 0;
  Rank expected = 0;
  for (const CheckpointName& name : files) {
    const auto checkpoint = read_checkpoint(name);
    if (!checkpoint.ok()) {
      return checkpoint.status();
    }
    const auto model = model_in(*checkpoint);
    if (!model.ok()) {
      return model.status().with_context(name.path);
    }
    if (name.rank == 0) {
      saved = {.round = checkpoint->round,
               .nodes = checkpoint->nodes,
               .averaged = 0,
               .agreement = checkpoint->agreement,
               .parameters = {}};
      dimension = model->parameters.size();
    }
    if (name.rank != expected++) {
      return Status(Fault::io, fmt::format("that of node {} is missing", expected - 1));
    }
    if (checkpoint->agreement != saved.agreement || model->parameters.size() != dimension) {
      return Status(Fault::malformed, name.path + ": it is of another run than node 0's");
    }
    if (!left_out(saved.agreement).contains(fmt::to_string(name.rank))) {
      sum.add(model->parameters, model->weight);
      ++saved.averaged;
    }
  }
  if (expected != saved.nodes) {
    return Status(Fault::io, fmt::format("that of node {} is missing", expected));
  }
  saved.parameters = sum.mean();
  return saved.parameters.empty() ? Result<SavedModel>(Status(Fault::malformed, "no node counts"))
                                  : Result<SavedModel>(std::move(saved));
}

}  // namespace

Result<std::vector<CheckpointName>> checkpoints_in(const std::string& folder) {
  std::error_code code;
  const fs::directory_iterator entries(folder, code);
  if (code) {
    return Status(Fault::io, fmt::format("{}: {}", folder, code.message()));
  }
  std::vector<CheckpointName> found;
  for (const auto& entry : entries) {
    if (auto name = checkpoint_name(entry.path().string())) {
      found.push_back(std::move(*name));
    }
  }
  std::ranges::sort(found, [](const CheckpointName& a, const CheckpointName& b) {
    return std::tuple(b.round, a.rank) < std::tuple(a.round, b.rank);
  });
  return found;
}

Result<NodeModel> model_in(const Checkpoint& checkpoint) {
  ByteReader in(checkpoint.optimizer);
  const auto size = in.read<std::uint64_t>();
  if (in.failed() || size == 0 || size > in.remaining() / sizeof(float)) {
    return Status(Fault::malformed, "it holds no model");
  }
  NodeModel model{.parameters = std::vector<float>(static_cast<std::size_t>(size))};
  if (!in.read_into(std::span<float>(model.parameters)) ||
      host_ops().count_non_finite(model.parameters).count > 0) {
    return Status(Fault::malformed, "its model holds a NaN or an infinity");
  }
  model.weight = in.read<double>();
  if (in.failed() || !is_weight(model.weight)) {
    return Status(Fault::malformed, "its model counts for no weight");
  }
  return model;
}

Result<SavedModel> read_mean_model(const std::string& folder, std::optional<Round> round) {
  const auto files = checkpoints_in(folder);
  if (!files.ok()) {
    return files.status();
  }
  std::string trouble;
  for (auto first = files->begin(); first != files->end();) {
    const auto last = std::find_if(first, files->end(), [&](const CheckpointName& name) {
      return name.round != first->round;
    });
    if (!round || *round == first->round) {
      auto mean = mean_of(std::span(first, last));
      if (mean.ok()) {
        return mean;
      }
      trouble += fmt::format("{}round {}: {}", trouble.empty() ? "" : "; ", first->round,
                             mean.status().message());
    }
    first = last;
  }
  return no_round(folder, round, trouble);
}

Result<SavedModel> read_node_model(const std::string& folder, Rank rank,
                                   std::optional<Round> round) {
  const auto files = checkpoints_in(folder);
  if (!files.ok()) {
    return files.status();
  }
  std::string trouble;
  for (const CheckpointName& name : *files) {
    if (name.rank != rank || (round && *round != name.round)) {
      continue;
    }
    const auto checkpoint = read_checkpoint(name);
    Status fault = checkpoint.status();
    if (checkpoint.ok()) {
      auto model = model_in(*checkpoint);
      if (model.ok()) {
        return SavedModel{.round = name.round,
                          .nodes = checkpoint->nodes,
                          .averaged = 1,
                          .agreement = checkpoint->agreement,
                          .parameters = std::move(model->parameters)};
      }
      fault = model.status().with_context(name.path);
    }
    trouble += (trouble.empty() ? "" : "; ") + fault.message();
  }
  const std::string of = round ? fmt::format(" of round {}", *round) : "";
  return Status(Fault::io, fmt::format("{}: node {} has no whole checkpoint{} there{}{}", folder,
                                       rank, of, trouble.empty() ? "" : ": ", trouble));
}

std::string averaged_text(const SavedModel& saved, std::string_view noun) {
  return saved.averaged == saved.nodes
             ? fmt::format("{} {}{}", saved.nodes, noun, saved.nodes == 1 ? "" : "s")
             : fmt::format("{} of {} {}s", saved.averaged, saved.nodes, noun);
}

std::string layout_digest(const ParameterLayout& layout) {
  const std::string text = layout_text(layout);
  return sha256_hex(std::as_bytes(std::span(text))).substr(0, 16);
}

std::optional<std::string> setting_in(const std::string& agreement, std::string_view name) {
  const std::string start = fmt::format("{}=", name);
  for (std::size_t at = 0; at < agreement.size();) {
    const std::size_t end = std::min(agreement.find('\n', at), agreement.size());
    const std::string_view line = std::string_view(agreement).substr(at, end - at);
    if (line.starts_with(start)) {
      return std::string(line.substr(start.size()));
    }
    at = end + 1;
  }
  return std::nullopt;
}

}  // namespace sotto
