#include <sotto/sites/process/site_parts.h>

#include <optional>
#include <utility>

#include <sotto/base/error.h>
#include <sotto/sites/nodes/incarnation.h>
#include <sotto/sites/process/site_of_options.h>

namespace sotto {
namespace {

SiteOptions with_defaults(SiteOptions options, std::span<const float> parameters) {
  if (!options.init) {
    options.init = model_digest(parameters);
  }
  return options.roster ? with_roster(std::move(options)) : options;
}

/// The site's privacy, with the ledger in its folder; null: it has none.
std::optional<PrivacyOptions> with_ledger(std::optional<PrivacyOptions> privacy,
                                          const SiteFolder* folder) {
  if (privacy && folder == nullptr) {
    throw Error("state", "noise hides nothing if what is spent is forgotten: give it a folder");
  }
  if (privacy) {
    privacy->ledger = folder->privacy_ledger();
  }
  return privacy;
}

sites::SiteSetup setup_of_process(const SiteOptions& options, const ParameterLayout& layout,
                                  std::span<float> parameters, const SiteFolder* folder) {
  sites::SiteSetup setup = site_setup(options, layout, parameters);
  setup.incarnation = draw_incarnation();
  setup.secret = draw_secret();
  setup.life = folder != nullptr ? folder->life() : SiteFolder::life_by_clock();
  return setup;
}

}  // namespace

SiteParts::SiteParts(const SiteOptions& given, std::unique_ptr<SiteFolder> state,
                     std::span<float> parameters, const ParameterLayout& tensors)
    : options(with_defaults(given, parameters)),
      layout(complete_layout(tensors, parameters.size())),
      folder(std::move(state)),
      gradients(parameters.size(), with_ledger(options.privacy, folder.get())),
      settings(settings_text(shared_settings(options, layout))),
      site(setup_of_process(options, layout, parameters, folder.get())) {
  if (options.roster && folder) {
    throw Error("state",
                "a run whose nodes come and go keeps none: a node that is started again "
                "is a newcomer; leave it out");
  }
  if (options.save_every > 1 && !folder) {
    throw Error("save_every", options.roster
                                  ? "a run whose nodes come and go saves nothing: leave it out"
                                  : "there is no folder to save to: give `state`, or leave it out");
  }
}

}  // namespace sotto
