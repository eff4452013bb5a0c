#include "site_result.h"

#include <sotto/observe/site_status.h>
#include <sotto/study/json/figures.h>

namespace sotto::cli {

Json site_result_json(const SiteResult& result, const Json& config) {
  Json json = site_status_json(result.report);
  json["config"] = config;
  json["stopped"] = result.stopped;
  json["export_trouble"] = result.export_trouble;
  json["final"] = {{"loss", result.final.loss}};
  study::add_quality(result.final, json["final"]);
  json["history"] = Json::array();
  for (const HistoryPoint& point : result.history) {
    json["history"].push_back({{"round", point.round},
                               {"time_s", point.time_s},
                               {"loss", point.loss},
                               {"bytes_per_node", point.bytes_per_node}});
    study::add_quality(point, json["history"].back());
  }
  json["time"] = {{"wall_s", result.time.wall_s},
                  {"compute_s", result.time.compute_s},
                  {"wait_s", result.time.wait_s},
                  {"save_s", result.save_s}};
  json["parameters_sha256"] = result.parameters_sha256;
  return json;
}

}  // namespace sotto::cli
