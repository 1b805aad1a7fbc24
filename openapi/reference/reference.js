// SPDX-License-Identifier: Apache-2.0
Redoc.init("/openapi.json", { jsonSamplesExpandLevel: 3, showExtensions: ["x-error-codes"], sideNavStyle: "path-only" },
    document.getElementById("reference"));
