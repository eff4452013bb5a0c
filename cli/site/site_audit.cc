// `sotto site audit`: whether the lines of an audit file follow from each other.
#include <memory>
#include <string>

#include <fmt/format.h>

#include <sotto/base/text.h>
#include <sotto/console/output.h>
#include <sotto/sites/nodes/report/audit_log.h>

#include "commands.h"

namespace sotto::cli {
namespace {

constexpr const char* kSiteAuditExamples =
    "Examples:\n"
    "  sotto site audit audit\n"
    "The exit status is 1 where a line was changed, removed or moved. Compare the last digest "
    "with\n"
    "the one that was noted elsewhere: who can write the file can write all of it anew.";

struct AuditOptions {
  console::CommonOptions common;
  std::string file;
};

int run(const AuditOptions& options) {
  const console::Output output(options.common);
  const Result<AuditHead> head = check_audit(options.file);
  const std::string name = printable(options.file);
  if (!head.ok() && head.status().fault() == Fault::io) {
    refuse("audit", options.file, head.status().message());
  }
  if (!head.ok()) {
    output.line(fmt::format("{}: NOT WHOLE: {}", name, head.status().message()));
  } else {
    output.line(fmt::format("{}: whole, {} records; the last is number {} with digest {}", name,
                            head->records, head->number, head->digest));
  }
  output.json({{"sotto", SOTTO_VERSION},
               {"file", name},
               {"whole", head.ok()},
               {"records", head.ok() ? Json(head->records) : Json()},
               {"number", head.ok() ? Json(head->number) : Json()},
               {"digest", head.ok() ? Json(head->digest) : Json()},
               {"trouble", head.ok() ? std::string() : printable(head.status().message())}});
  return head.ok() ? console::kDone : console::kFailed;
}

}  // namespace

console::Command add_site_audit_command(CLI::App& site) {
  auto options = std::make_shared<AuditOptions>();
  CLI::App* command =
      site.add_subcommand("audit", "Checks that no line of a site's audit file was changed");
  command->add_option("FILE", options->file, "The audit file")->type_name("FILE")->required();
  return completed(*command, options, kSiteAuditExamples, run);
}

}  // namespace sotto::cli
