"""A ConfigMap: older schedulers can read their Policy from one."""

from kubestow.api.meta import ApiObject


class ConfigMap(ApiObject, frozen=True, kw_only=True):
    data: dict[str, str] = {}
