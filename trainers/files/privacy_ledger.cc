#include <sotto/trainers/files/privacy_ledger.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/digest.h>
#include <sotto/base/durable_file.h>
#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/trainers/settings/agreed_settings.h>

namespace sotto {
namespace {

constexpr std::string_view kTitle = "sotto privacy ledger 1\n";
constexpr std::string_view kSteps = "steps=";
constexpr std::string_view kDigest = "sha256=";
constexpr std::size_t kMostLedgerBytes = 4096;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string mechanism_text(const PrivacyOptions& o) {
  AgreedSettings settings = {{"unit", std::string(privacy_unit_name(o.unit))},
                             {"clip-norm", fmt::format("{}", o.clip_norm)},
                             {"noise-multiplier", fmt::format("{}", o.noise_multiplier)},
                             {"sampling-rate", fmt::format("{}", o.sampling_rate)},
                             {"batch", fmt::format("{}", o.batch)}};
  if (!o.before.empty()) {
    settings.push_back({"before", told_before_text(o.before)});
  }
  return settings_text(settings);
}

/// Cuts the last line, which starts with `name`, off `text` and returns what follows the name;
/// empty when it is none such.
std::string_view cut_last(std::string_view& text, std::string_view name) {
  const auto start = text.rfind('\n', text.size() < 2 ? 0 : text.size() - 2) + 1;
  std::string_view line = text.substr(start);
  if (!line.starts_with(name) || !line.ends_with('\n')) {
    return {};
  }
  text = text.substr(0, start);
  line.remove_prefix(name.size());
  line.remove_suffix(1);
  return line;
}

}  // namespace

PrivacyLedger::PrivacyLedger(const PrivacyOptions& options)
    : path_(options.ledger), mechanism_(mechanism_text(options)) {
  std::error_code code;
  existed_ = std::filesystem::exists(path_, code);
  if (!existed_) {
    return;
  }
  const auto damaged = [&](std::string_view what) {
    refuse(
        "privacy_ledger", path_,
        fmt::format("{}: what is spent cannot be known; put back a copy, or start anew with data "
                    "that no run has used",
                    what));
  };
  const auto file = read_file(path_, kMostLedgerBytes);
  if (!file.ok()) {
    damaged(file.status().message());
  }
  std::string_view text(reinterpret_cast<const char*>(file->data()), file->size());
  const std::string_view digest = cut_last(text, kDigest);
  if (digest.empty() || digest != sha256_hex(bytes_of(text)) || !text.starts_with(kTitle)) {
    damaged("it is damaged");
  }
  const std::string_view steps = cut_last(text, kSteps);
  const auto entered = parse_number<std::uint64_t>(steps);
  if (!entered) {
    damaged("it is damaged");
  }
  steps_ = *entered;
  text.remove_prefix(kTitle.size());
  if (const std::string difference = first_difference(mechanism_, text); !difference.empty()) {
    refuse("privacy_ledger", path_,
           fmt::format("it was kept under other settings: {}; give these, or another folder",
                       difference));
  }
}

Status PrivacyLedger::enter(std::uint64_t steps, std::uint64_t allowed) {
  return steps <= steps_ ? Status() : write(std::min(steps + kAhead - 1, std::max(steps, allowed)));
}

Status PrivacyLedger::settle(std::uint64_t steps) {
  return steps == steps_ ? Status() : write(steps);
}

Status PrivacyLedger::write(std::uint64_t steps) {
  std::string text = fmt::format("{}{}{}{}\n", kTitle, mechanism_, kSteps, steps);
  text += fmt::format("{}{}\n", kDigest, sha256_hex(bytes_of(text)));
  if (Status status = write_durably(path_, bytes_of(text), FileReaders::owner); !status.ok()) {
    return status.with_context("privacy ledger");
  }
  steps_ = steps;
  return {};
}

}  // namespace sotto
