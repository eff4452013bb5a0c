#include <sotto/sites/elastic/elastic_state.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

constexpr std::string_view kElasticRunFormat = "epochs run 1";

/// The settings without which a model, or what its rules remember, is another one. The others are
/// of a run, and the next one may have others.
std::string model_settings(const ElasticOptions& options, const ParameterLayout& layout) {
  constexpr auto kOfModels = std::to_array<std::string_view>(
      {"parameters", "layout", "exchange", "step-rule", "own-step-rule", "torch-optimizer",
       "communication-interval", "outer-step-rule"});
  AgreedSettings settings = agreed_settings(options, layout);
  std::erase_if(settings, [&](const auto& setting) {
    return std::ranges::find(kOfModels, setting.first) == kOfModels.end();
  });
  return settings_text(settings);
}

/// Bytes of the section of the site, as it is now.
std::size_t bytes_of(const sites::EpochMember& member, const sites::EpochLocalSteps* local) {
  return ByteBuffer::size_of([&](ByteBuffer& out) {
    member.save(out);
    if (local != nullptr) {
      local->save(out);
    }
  });
}

/// Reads the section of the run; false where it breaks the format.
bool read_run(std::span<const std::byte> section, std::span<const std::byte> site,
              ElasticState& state) {
  ByteReader in(section);
  const bool known = in.read_string(kElasticRunFormat.size()) == kElasticRunFormat;
  state.run[0] = in.read<std::uint64_t>();
  state.run[1] = in.read<std::uint64_t>();
  const auto model_bytes = in.read<std::uint64_t>();
  if (!known || !in.finished() || model_bytes > site.size()) {
    return false;
  }
  const auto model = site.first(static_cast<std::size_t>(model_bytes));
  const auto rest = site.subspan(model.size());
  state.model.assign(model.begin(), model.end());
  state.local_rule.assign(rest.begin(), rest.end());
  return true;
}

/// Adds what was set aside to the words on others.
void add_to(std::string& warning, const Result<std::string>& said) {
  if (!said.ok()) {
    throw Error("state", said.status().message());
  }
  warning += (warning.empty() || said->empty() ? "" : "; ") + *said;
}

}  // namespace

std::optional<ElasticState> read_elastic_state(SiteFolder& folder, const ElasticOptions& options,
                                               const ParameterLayout& layout,
                                               std::string& warning) {
  auto found = folder.read();
  if (!found.ok() || (found->has_value() && !(*found)->warning.empty())) {
    add_to(warning, folder.set_aside_damaged());
    found = folder.read();
  }
  if (!found.ok()) {
    throw Error("state", found.status().message());
  }
  if (!found->has_value()) {
    return std::nullopt;
  }
  if (!(*found)->warning.empty()) {  // the newer one is of another format, or cannot be read
    add_to(warning, (*found)->warning);
  }
  const SiteStateFile& file = (*found)->state;
  if (const auto difference = first_difference(model_settings(options, layout), file.settings);
      !difference.empty()) {
    throw Error("state", fmt::format("the model in {} was kept under other settings: {}; give "
                                     "these, or another folder",
                                     (*found)->file, difference));
  }
  ElasticState state{.step = file.round, .file = (*found)->file};
  if (!read_run(file.run, file.site, state)) {
    set_aside(folder, state, "its section 'run' breaks the format", warning);
    return read_elastic_state(folder, options, layout, warning);  // there are two files at most
  }
  return state;
}

void set_aside(SiteFolder& folder, const ElasticState& state, std::string_view why,
               std::string& warning) {
  add_to(warning, folder.set_aside(state.file, why));
}

ElasticStateWriter::ElasticStateWriter(SiteFolder* folder, const ElasticOptions& options,
                                       const ParameterLayout& layout)
    : folder_(folder),
      every_(save_every_of(options)),
      settings_(folder == nullptr ? std::string() : model_settings(options, layout)) {}

void ElasticStateWriter::take(const sites::EpochMember& member,
                              const sites::EpochLocalSteps* local) {
  take(
      member.applied(), member.history(), [&](ByteBuffer& out) { member.save(out); }, local);
}

void ElasticStateWriter::take(Round step, const sites::History& run_of,
                              const std::function<void(ByteBuffer&)>& model,
                              const sites::EpochLocalSteps* local) {
  ByteBuffer site(std::move(file_.site));
  model(site);
  const std::uint64_t model_bytes = site.bytes().size();
  if (local != nullptr) {
    local->save(site);
  }
  step_ = step;
  file_ = {.round = step_,
           .settings = settings_,
           .site = std::move(site).take(),
           .run = run_section(run_of, model_bytes)};
}

std::vector<std::byte> ElasticStateWriter::run_section(const sites::History& run,
                                                       std::uint64_t model_bytes) {
  ByteBuffer out;
  out.write_string(kElasticRunFormat);
  out.write(run[0]);
  out.write(run[1]);
  out.write(model_bytes);
  return std::move(out).take();
}

Status ElasticStateWriter::keep(sites::EpochMember& member, const sites::EpochLocalSteps* local) {
  go_on(member);
  if (folder_ == nullptr || every_ == 0 || copying_ || !thread_.idle()) {
    return {};
  }
  const Round step = member.applied();
  // One that is put out may come back to a run that has made fewer steps.
  const bool due = step >= step_ + every_ || step < step_;
  if (!thread_.written().ok() || !due) {
    return thread_.written();
  }
  if (!thread_.make_room(file_.site, bytes_of(member, local))) {
    return {};  // a step after this one copies
  }
  before_ = std::exchange(step_, step);
  run_ = member.history();
  ByteBuffer rule(std::move(local_rule_));
  if (local != nullptr) {
    local->save(rule);
  }
  local_rule_ = std::move(rule).take();
  copying_ = true;
  member.begin_copy(std::move(file_.site));
  member.file_copy().copy_slice();  // all of a short one: it is on its way to the disk at once
  go_on(member);
  return {};
}

void ElasticStateWriter::go_on(sites::EpochMember& member) {
  if (!copying_) {
    return;
  }
  sites::WholeCopy& copy = member.file_copy();
  auto copied = copy.take();
  copying_ = copy.holds();
  if (copied && copied->step == step_) {
    const std::uint64_t model_bytes = copied->bytes.size();
    file_ = {.round = step_,
             .settings = settings_,
             .site = std::move(copied->bytes),
             .run = run_section(run_, model_bytes)};
    thread_.write([this] {
      file_.site.insert(file_.site.end(), local_rule_.begin(), local_rule_.end());
      return folder_->write(file_);
    });
  } else if (!copying_) {
    step_ = before_;  // the member that copied it is gone
  }
}

Status ElasticStateWriter::save(Round step, const std::function<void()>& take) {
  if (folder_ == nullptr || every_ == 0) {
    return {};
  }
  if (std::exchange(copying_, false)) {
    step_ = before_;  // it is written as it is now, in place of that
  }
  thread_.settle({});
  if (!thread_.written().ok() || step == step_) {
    return thread_.written();
  }
  take();
  return folder_->write(file_);
}

Status ElasticStateWriter::save(const sites::EpochMember& member,
                                const sites::EpochLocalSteps* local) {
  return save(member.applied(), [&] { take(member, local); });
}

Status ElasticStateWriter::save(const ElasticState& state, const sites::EpochLocalSteps* local) {
  return save(state.step, [&] {
    take(
        state.step, state.run,
        [&](ByteBuffer& out) { out.append(std::span<const std::byte>(state.model)); }, local);
  });
}

}  // namespace sotto
